-- name: add_pictures(hash text, organiser_id text, body text, now_us int)
INSERT INTO pictures (hash, organiser_id, body, created_at_us)
SELECT r.hash, r.organiser_id, r.body, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: picture_by_hash() :hash text
SELECT body FROM pictures WHERE hash = :hash
