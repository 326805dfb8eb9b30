-- name: put_plans(hash text, name text, seat_count int, document text, now_us int)
-- Plans are immutable: the same hash is the same plan.
INSERT INTO plans (hash, name, seat_count, document, created_at_us)
SELECT r.hash, r.name, r.seat_count, r.document, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING hash

-- name: put_seats(plan_hash text, seat_index int, seat_id text, tier text, flags int)
INSERT INTO seats (plan_hash, seat_index, seat_id, tier, flags)
SELECT r.plan_hash, r.seat_index, r.seat_id, r.tier, r.flags FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: plan_document() :hash text
SELECT document FROM plans WHERE hash = :hash

-- name: put_venues(id text, name text, plan_hash text, city text, country text, time_zone text, now_us int)
INSERT INTO venues (id, name, plan_hash, city, country, time_zone, changed_at_us)
SELECT r.id, r.name, r.plan_hash, r.city, r.country, r.time_zone, r.now_us FROM :rows WHERE true
ON CONFLICT (id) DO UPDATE SET name = excluded.name, plan_hash = excluded.plan_hash, city = excluded.city,
  country = excluded.country, time_zone = excluded.time_zone, changed_at_us = excluded.changed_at_us

-- name: venues_by_id(id text)
SELECT v.id, v.name, v.plan_hash, v.city, v.country, v.time_zone FROM :rows CROSS JOIN venues AS v WHERE v.id = r.id

-- name: put_events(id text, venue_id text, plan_hash text, name text, event_state text, currency text, starts_at_us int, sale_starts_at_us int, sale_ends_at_us int, max_per_person int, document text, now_us int, organiser_id text)
-- The document is the whole event; the columns are what lists and reports need.
INSERT INTO events (id, venue_id, plan_hash, name, event_state, currency, starts_at_us, sale_starts_at_us,
  sale_ends_at_us, max_per_person, document, created_at_us, changed_at_us, organiser_id)
SELECT r.id, r.venue_id, r.plan_hash, r.name, r.event_state, r.currency, r.starts_at_us, r.sale_starts_at_us,
  r.sale_ends_at_us, r.max_per_person, r.document, r.now_us, r.now_us, r.organiser_id
FROM :rows WHERE true
ON CONFLICT (id) DO UPDATE SET venue_id = excluded.venue_id, plan_hash = excluded.plan_hash, name = excluded.name,
  event_state = excluded.event_state, currency = excluded.currency, starts_at_us = excluded.starts_at_us,
  sale_starts_at_us = excluded.sale_starts_at_us, sale_ends_at_us = excluded.sale_ends_at_us,
  max_per_person = excluded.max_per_person, document = excluded.document, changed_at_us = excluded.changed_at_us,
  organiser_id = excluded.organiser_id

-- name: drop_tiers(event_id text)
DELETE FROM price_tiers WHERE event_id IN (SELECT r.event_id FROM :rows)

-- name: put_tiers(event_id text, key text, name text, price_minor int, currency text)
INSERT INTO price_tiers (event_id, key, name, price_minor, currency)
SELECT r.event_id, r.key, r.name, r.price_minor, r.currency FROM :rows

-- name: events_by_id(id text)
SELECT e.id, e.document FROM :rows CROSS JOIN events AS e WHERE e.id = r.id

-- name: events_page() :event_state text :starts_after_us int :after_id text :limit int
-- Events ordered by start. An empty state means any.
SELECT document FROM events
WHERE (:event_state = '' OR event_state = :event_state)
  AND (starts_at_us > :starts_after_us OR (starts_at_us = :starts_after_us AND id > :after_id))
ORDER BY starts_at_us, id LIMIT :limit

-- name: events_of_organiser() :organiser_id text :starts_after_us int :after_id text :limit int
SELECT document FROM events
WHERE organiser_id = :organiser_id
  AND (starts_at_us > :starts_after_us OR (starts_at_us = :starts_after_us AND id > :after_id))
ORDER BY starts_at_us, id LIMIT :limit

-- name: ledger_counts()
-- For `frontrow ledger status`.
SELECT 'bookings ' || state, count(*) FROM bookings GROUP BY state
UNION ALL SELECT 'seats active', count(*) FROM booking_seats WHERE active = 1
UNION ALL SELECT 'facts unpublished', count(*) FROM outbox WHERE published_at_us IS NULL
UNION ALL SELECT 'events', count(*) FROM events

-- name: seats_sold_twice() :limit int
-- Must return nothing: seats with two active bookings.
SELECT event_id, seat_index, count(*) FROM booking_seats WHERE active = 1
GROUP BY event_id, seat_index HAVING count(*) > 1 ORDER BY event_id, seat_index LIMIT :limit

-- name: seats_out_of_step() :limit int
-- Must return nothing: active seats whose booking is not active, and seats without a booking.
SELECT s.booking_id, s.seat_index FROM booking_seats AS s
LEFT JOIN bookings AS b ON b.id = s.booking_id{ AND b.event_id = s.event_id}
WHERE s.active = 1 AND (b.state IS NULL OR b.state NOT IN ('held', 'paying', 'confirmed')) LIMIT :limit

-- name: bookings_out_of_step() :limit int
-- Must return nothing: active bookings whose seat_count differs from their active seats.
SELECT b.id, b.seat_count FROM bookings AS b
WHERE b.state IN ('held', 'paying', 'confirmed')
  AND b.seat_count <> (SELECT count(*) FROM booking_seats AS s
    WHERE s.booking_id = b.id{ AND s.event_id = b.event_id} AND s.active = 1) LIMIT :limit

-- name: bookings_without_event() :limit int
-- Must return nothing: bookings of a partitioned ledger whose event is not, or not rightly, in its directory.
SELECT b.id, b.event_id FROM bookings AS b{ LEFT JOIN booking_events AS d ON d.booking_id = b.id}
WHERE {d.event_id IS NULL OR d.event_id <> b.event_id OR }1 = 0 LIMIT :limit
