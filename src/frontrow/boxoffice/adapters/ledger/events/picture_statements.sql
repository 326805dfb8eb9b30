-- name: add_pictures(hash text, organiser_id text, body text, now_us int, check_at_us int)
-- A picture that is known already is checked for use later, because somebody is about to use it.
INSERT INTO pictures (hash, organiser_id, body, created_at_us, check_at_us)
SELECT r.hash, r.organiser_id, r.body, r.now_us, r.check_at_us FROM :rows WHERE true
ON CONFLICT (hash) DO UPDATE SET check_at_us = excluded.check_at_us

-- name: picture_by_hash() :hash text
SELECT body FROM pictures WHERE hash = :hash

-- name: check_pictures(hash text, check_at_us int)
-- These pictures were replaced somewhere: see then whether anything still shows them.
UPDATE pictures AS p SET check_at_us = r.check_at_us FROM :rows WHERE p.hash = r.hash

-- name: pictures_to_check() :now_us int :limit int
SELECT hash, check_at_us FROM pictures WHERE check_at_us > 0 AND check_at_us <= :now_us
ORDER BY check_at_us LIMIT :limit

-- name: uses_of_picture() :hash text
-- Reads every event, because an event's document names its picture. Asked once per picture, days after its upload.
SELECT b.organiser_id FROM brands AS b WHERE b.logo = :hash
UNION ALL SELECT e.id FROM events AS e WHERE e.document LIKE '%"' || :hash || '"%' LIMIT 1

-- name: drop_pictures(hash text, check_at_us int)
-- The time is compared because a new upload of the same picture moves it.
DELETE FROM pictures AS p WHERE (p.hash, p.check_at_us) IN (SELECT r.hash, r.check_at_us FROM :rows) RETURNING hash

-- name: keep_pictures(hash text, check_at_us int)
UPDATE pictures AS p SET check_at_us = 0 FROM :rows WHERE p.hash = r.hash AND p.check_at_us = r.check_at_us

-- name: put_brand_colours(organiser_id text, colour text, now_us int)
INSERT INTO brands (organiser_id, colour, changed_at_us)
SELECT r.organiser_id, r.colour, r.now_us FROM :rows WHERE true
ON CONFLICT (organiser_id) DO UPDATE SET colour = excluded.colour, changed_at_us = excluded.changed_at_us
RETURNING organiser_id

-- name: put_brand_logos(organiser_id text, logo text, logo_width int, logo_height int, now_us int)
INSERT INTO brands (organiser_id, logo, logo_width, logo_height, changed_at_us)
SELECT r.organiser_id, r.logo, r.logo_width, r.logo_height, r.now_us FROM :rows WHERE true
ON CONFLICT (organiser_id) DO UPDATE SET logo = excluded.logo, logo_width = excluded.logo_width,
  logo_height = excluded.logo_height, changed_at_us = excluded.changed_at_us
RETURNING organiser_id

-- name: brands_of(organiser_id text)
-- An organisation that has chosen no colour and no logo still has its name.
SELECT r.organiser_id, coalesce(o.name, ''), coalesce(b.colour, ''), coalesce(b.logo, ''), coalesce(b.logo_width, 0),
  coalesce(b.logo_height, 0), coalesce(b.changed_at_us, 0)
FROM :rows LEFT JOIN brands AS b ON b.organiser_id = r.organiser_id LEFT JOIN organisers AS o ON o.id = r.organiser_id
WHERE b.organiser_id IS NOT NULL OR o.id IS NOT NULL

-- name: brands_changed() :since_us int :after text :limit int
-- Brands by the time of their last change, from after that one on.
SELECT b.organiser_id, coalesce(o.name, ''), b.colour, b.logo, b.logo_width, b.logo_height, b.changed_at_us
FROM brands AS b LEFT JOIN organisers AS o ON o.id = b.organiser_id
WHERE (b.changed_at_us, b.organiser_id) > (:since_us, :after) ORDER BY b.changed_at_us, b.organiser_id LIMIT :limit
