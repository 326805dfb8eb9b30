-- name: add_tickets(id text, booking_id text, event_id text, seat_index int, code text, now_us int) row by row
-- In the confirming transaction. A second valid ticket of a seat breaks one_valid_ticket_per_seat and with it the
-- commit.
INSERT INTO tickets (id, booking_id, event_id, seat_index, ticket_state, code, issued_at_us, changed_at_us)
SELECT r.id, r.booking_id, r.event_id, r.seat_index, 'valid', r.code, r.now_us, r.now_us
FROM :rows WHERE true ORDER BY r.event_id, r.seat_index
ON CONFLICT ({event_id, }booking_id, seat_index) DO NOTHING

-- name: revoke_tickets_of_bookings(booking_id text, now_us int)
-- In the transaction that ends a confirmed booking.
UPDATE tickets AS t SET ticket_state = 'revoked', changed_at_us = r.now_us
FROM :rows :event_of r.booking_id
WHERE t.booking_id = r.booking_id{ AND t.event_id = d.event_id} AND coalesce(t.ticket_state, '') = 'valid'
RETURNING t.id

-- name: revoke_tickets(booking_id text, seat_index int, now_us int)
-- Single seats given back: put this query into the transaction of the partial refund.
UPDATE tickets AS t SET ticket_state = 'revoked', changed_at_us = r.now_us
FROM :rows :event_of r.booking_id
WHERE t.booking_id = r.booking_id{ AND t.event_id = d.event_id} AND t.seat_index = r.seat_index
  AND coalesce(t.ticket_state, '') = 'valid'
RETURNING t.id

-- name: lock_tickets(booking_id text)
-- The valid tickets of bookings and whether they were let in, kept so until this transaction ends. In the order of
-- their ids: no deadlock.
SELECT t.booking_id, t.seat_index, t.scanned_at_us, t.transfer_id FROM tickets AS t
WHERE ({t.event_id, }t.booking_id) IN (SELECT {d.event_id, }r.booking_id FROM :rows :event_of r.booking_id)
  AND coalesce(t.ticket_state, '') = 'valid'
ORDER BY t.id :for_update

-- name: ticket_by_id() :id text
SELECT id, booking_id, event_id, seat_index, ticket_state, code, issued_at_us, changed_at_us, scanned_at_us,
  transfer_id, left_at_us
FROM tickets WHERE id = :id

-- name: ticket_of_event() :id text :event_id text
SELECT id, booking_id, event_id, seat_index, ticket_state, code, issued_at_us, changed_at_us, scanned_at_us,
  transfer_id, left_at_us
FROM tickets WHERE id = :id AND event_id = :event_id

-- name: tickets_of_bookings(id text)
SELECT t.id, t.booking_id, t.event_id, t.seat_index, t.ticket_state, t.code, t.issued_at_us, t.changed_at_us,
  t.scanned_at_us, t.transfer_id, t.left_at_us
FROM :rows :event_of r.id CROSS JOIN tickets AS t
WHERE t.booking_id = r.id{ AND t.event_id = d.event_id} ORDER BY t.seat_index

-- name: revoked_tickets() :event_id text :after_us int :after_id text :limit int
-- The revocation list in order, page by page.
SELECT id, changed_at_us FROM tickets
WHERE event_id = :event_id AND ticket_state = 'revoked'
  AND (changed_at_us > :after_us OR (changed_at_us = :after_us AND id > :after_id))
ORDER BY changed_at_us, id LIMIT :limit

-- name: valid_tickets() :event_id text :after int :limit int
-- The valid tickets of an event in the order of their seats.
SELECT id, booking_id, event_id, seat_index, ticket_state, code, issued_at_us, changed_at_us, scanned_at_us,
  transfer_id, left_at_us
FROM tickets WHERE event_id = :event_id AND ticket_state = 'valid' AND seat_index > :after
ORDER BY seat_index LIMIT :limit
