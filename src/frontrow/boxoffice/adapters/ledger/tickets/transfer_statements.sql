-- name: add_transfers(id text, booking_id text, event_id text, seat_index int, ticket_id text, fan text, email text, locale text, from_transfer text, now_us int, expires_at_us int)
-- A second transfer of a ticket that is on its way breaks one_transfer_per_ticket.
INSERT INTO ticket_transfers (id, booking_id, event_id, seat_index, ticket_id, fan, email, locale, transfer_state,
  created_at_us, expires_at_us, from_transfer, new_ticket_id, name, changed_at_us)
SELECT r.id, r.booking_id, r.event_id, r.seat_index, r.ticket_id, r.fan, r.email, r.locale, 'sent',
  r.now_us, r.expires_at_us, r.from_transfer, '', '', r.now_us
FROM :rows WHERE true

-- name: transfer_by_id() :id text
SELECT id, booking_id, event_id, seat_index, ticket_id, fan, email, locale, transfer_state, created_at_us,
  expires_at_us, from_transfer, new_ticket_id, name
FROM ticket_transfers WHERE id = :id

-- name: transfers_of_booking() :booking_id text
SELECT id, booking_id, event_id, seat_index, ticket_id, fan, email, locale, transfer_state, created_at_us,
  expires_at_us, from_transfer, new_ticket_id, name
FROM ticket_transfers WHERE booking_id = :booking_id ORDER BY created_at_us, id

-- name: transfers_received() :email text :limit int
SELECT id, booking_id, event_id, seat_index, ticket_id, fan, email, locale, transfer_state, created_at_us,
  expires_at_us, from_transfer, new_ticket_id, name
FROM ticket_transfers WHERE email = :email AND transfer_state = 'accepted' ORDER BY created_at_us DESC, id LIMIT :limit

-- name: transfers_to_address() :email text :since_us int
SELECT count(*) FROM ticket_transfers WHERE email = :email AND created_at_us > :since_us

-- name: turn_transfers(id text, to_state text, new_ticket_id text, name text, locale text, now_us int)
UPDATE ticket_transfers AS t SET transfer_state = r.to_state, new_ticket_id = r.new_ticket_id, name = r.name,
  locale = r.locale, changed_at_us = r.now_us
FROM :rows WHERE t.id = r.id AND coalesce(t.transfer_state, '') = 'sent'
RETURNING t.id

-- name: hand_over_tickets(ticket_id text, event_id text, new_id text, code text, transfer_id text, now_us int)
-- The row of the seat becomes the new ticket, unless the old one was used or revoked.
UPDATE tickets AS t SET id = r.new_id, code = r.code, transfer_id = r.transfer_id, issued_at_us = r.now_us,
  changed_at_us = r.now_us
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id AND coalesce(t.ticket_state, '') = 'valid'
  AND t.scanned_at_us IS NULL
RETURNING t.id

-- name: add_dead_tickets(id text, transfer_id text, event_id text, seat_index int, code text, now_us int)
-- The sender's ticket, for the revocation list. It belongs to the transfer, because the booking has a new one.
INSERT INTO tickets (id, booking_id, event_id, seat_index, ticket_state, code, issued_at_us, changed_at_us)
SELECT r.id, r.transfer_id, r.event_id, r.seat_index, 'revoked', r.code, r.now_us, r.now_us FROM :rows WHERE true

-- name: forget_transfers_to(email text, now_us int)
-- Of a person who asks to be forgotten. The tickets stay valid; nobody is named any more.
UPDATE ticket_transfers AS t SET email = '', name = '', changed_at_us = r.now_us,
  transfer_state = CASE WHEN t.transfer_state = 'sent' THEN 'withdrawn' ELSE t.transfer_state END
FROM :rows WHERE t.email = r.email
