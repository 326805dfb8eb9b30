-- name: uses_of_booking(booking_id text)
SELECT u.counter, u.quantity FROM :rows CROSS JOIN booking_uses AS u WHERE u.booking_id = r.booking_id

-- name: add_use_counters(counter text)
INSERT INTO use_counters (counter, taken) SELECT r.counter, 0 FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: lock_use_counters(counter text)
-- Locks counters until the transaction ends, in the order of their names to avoid deadlocks.
SELECT c.counter, c.taken FROM use_counters AS c WHERE c.counter IN (SELECT r.counter FROM :rows)
ORDER BY c.counter :for_update

-- name: set_use_counters(counter text, taken int)
UPDATE use_counters AS c SET taken = r.taken FROM :rows WHERE c.counter = r.counter

-- name: uses_of_counter() :counter text
-- Every use of a counter with its booking: who, how many, in which state, until when.
SELECT u.booking_id, u.quantity, b.fan, b.state, b.hold_expires_at_us
FROM booking_uses AS u :event_of u.booking_id
JOIN bookings AS b ON b.id = u.booking_id{ AND b.event_id = d.event_id} WHERE u.counter = :counter

-- name: drop_uses_of_bookings(booking_id text)
DELETE FROM booking_uses WHERE booking_id IN (SELECT r.booking_id FROM :rows)

-- name: drop_uses(booking_id text, counter text)
DELETE FROM booking_uses WHERE (booking_id, counter) IN (SELECT r.booking_id, r.counter FROM :rows)

-- name: lower_uses(booking_id text, counter text, quantity int)
-- A partial refund or return: what the booking still uses. The counter stays too high until somebody looks at its uses.
UPDATE booking_uses AS u SET quantity = r.quantity FROM :rows
WHERE u.booking_id = r.booking_id AND u.counter = r.counter AND u.quantity > r.quantity

-- name: add_uses(booking_id text, counter text, quantity int, event_id text)
INSERT INTO booking_uses (booking_id, counter, quantity, event_id)
SELECT r.booking_id, r.counter, r.quantity, r.event_id FROM :rows

-- name: set_seat_prices(booking_id text, seat_index int, price_minor int)
UPDATE booking_seats AS s SET price_minor = r.price_minor
FROM :rows :event_of r.booking_id
WHERE s.booking_id = r.booking_id{ AND s.event_id = d.event_id} AND s.seat_index = r.seat_index

-- name: set_prices(booking_id text, amount_minor int, price_lines text, now_us int)
-- The price of a hold after a choice. The caller has locked the row.
UPDATE bookings AS b SET amount_minor = r.amount_minor, price_lines = r.price_lines, changed_at_us = r.now_us
FROM :rows :event_of r.booking_id WHERE b.id = r.booking_id{ AND b.event_id = d.event_id}
RETURNING :booking

-- name: live_uses(counter text) :now_us int
-- How many of each counter are taken by bookings that are sold or held.
SELECT u.counter, sum(u.quantity)
FROM :rows CROSS JOIN booking_uses AS u :event_of u.booking_id
JOIN bookings AS b ON b.id = u.booking_id{ AND b.event_id = d.event_id}
WHERE u.counter = r.counter AND (b.state = 'confirmed'
  OR (b.state IN ('held', 'paying') AND b.hold_expires_at_us > :now_us))
GROUP BY u.counter
