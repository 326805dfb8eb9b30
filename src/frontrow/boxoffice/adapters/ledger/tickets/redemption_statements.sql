-- name: add_redemptions(id text, event_id text, booking_id text, add_on text, quantity int, gate text, made_by text, at_us int, refused text)
-- Under the booking's lock. An id that another booking has is left out.
INSERT INTO add_on_redemptions (id, event_id, booking_id, add_on, quantity, gate, made_by, at_us, refused)
SELECT r.id, r.event_id, r.booking_id, r.add_on, r.quantity, r.gate, r.made_by, r.at_us, r.refused
FROM :rows WHERE true ORDER BY r.id
ON CONFLICT DO NOTHING RETURNING id

-- name: redemptions_of_bookings(booking_id text)
SELECT x.id, x.event_id, x.booking_id, x.add_on, x.quantity, x.gate, x.made_by, x.at_us, x.refused, x.undone_at_us
FROM :rows CROSS JOIN add_on_redemptions AS x WHERE x.booking_id = r.booking_id ORDER BY x.at_us, x.id

-- name: redemptions_of_event() :event_id text :after text :limit int
SELECT id, event_id, booking_id, add_on, quantity, gate, made_by, at_us, refused, undone_at_us
FROM add_on_redemptions WHERE event_id = :event_id AND id > :after ORDER BY id LIMIT :limit

-- name: redemption_mark() :event_id text
-- It changes with every redemption and every undone one.
SELECT count(*), coalesce(max(at_us), 0), coalesce(max(undone_at_us), 0) FROM add_on_redemptions
WHERE event_id = :event_id

-- name: undo_redemptions(id text, event_id text, now_us int)
UPDATE add_on_redemptions AS x SET undone_at_us = r.now_us FROM :rows
WHERE x.id = r.id AND x.event_id = r.event_id AND x.undone_at_us IS NULL AND x.refused = '' RETURNING x.id
