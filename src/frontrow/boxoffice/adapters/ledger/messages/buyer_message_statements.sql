-- name: drop_message_drafts(event_id text, made_by text, before_us int)
-- A member has one draft per event; forgotten drafts of others go with it.
DELETE FROM buyer_messages WHERE id IN (SELECT m.id FROM :rows JOIN buyer_messages m ON m.event_id = r.event_id
  WHERE m.message_state = 'draft' AND (m.made_by = r.made_by OR m.created_at_us < r.before_us))

-- name: put_buyer_messages(id text, event_id text, made_by text, kind text, key text, subject text, body text, message_state text, recipients int, now_us int)
-- A draft may be sent. What was sent stays as it is.
INSERT INTO buyer_messages (id, event_id, made_by, audience_kind, audience_key, subject, body, message_state,
  recipients, created_at_us, next_at_us)
SELECT r.id, r.event_id, r.made_by, r.kind, r.key, r.subject, r.body, r.message_state, r.recipients, r.now_us, r.now_us
FROM :rows WHERE true
ON CONFLICT (id) DO UPDATE SET message_state = excluded.message_state, recipients = excluded.recipients,
  created_at_us = excluded.created_at_us, next_at_us = excluded.next_at_us, made_by = excluded.made_by
WHERE buyer_messages.message_state = 'draft' AND buyer_messages.event_id = excluded.event_id

-- name: buyer_message_by_id() :id text
SELECT m.id, m.event_id, m.made_by, m.audience_kind, m.audience_key, m.subject, m.body, m.message_state,
  m.created_at_us, m.recipients, m.last_fence, m.all_queued, m.sent, m.failed, m.skipped
FROM buyer_messages AS m WHERE m.id = :id

-- name: lock_buyer_message() :id text
SELECT m.id, m.event_id, m.made_by, m.audience_kind, m.audience_key, m.subject, m.body, m.message_state,
  m.created_at_us, m.recipients, m.last_fence, m.all_queued, m.sent, m.failed, m.skipped
FROM buyer_messages AS m WHERE m.id = :id :for_update

-- name: buyer_messages_page() :event_id text :before_us int :limit int
-- What was sent, newest first.
SELECT m.id, m.event_id, m.made_by, m.audience_kind, m.audience_key, m.subject, m.body, m.message_state,
  m.created_at_us, m.recipients, m.last_fence, m.all_queued, m.sent, m.failed, m.skipped
FROM buyer_messages AS m
WHERE m.event_id = :event_id AND m.message_state <> 'draft' AND m.created_at_us < :before_us
ORDER BY m.created_at_us DESC, m.id DESC LIMIT :limit

-- name: messages_sent_since() :event_id text :since_us int :booking_id text
-- To many people, and to this booking.
SELECT coalesce(sum(CASE WHEN m.audience_kind <> 'booking' THEN 1 ELSE 0 END), 0),
  coalesce(sum(CASE WHEN m.audience_kind = 'booking' AND m.audience_key = :booking_id THEN 1 ELSE 0 END), 0)
FROM buyer_messages AS m
WHERE m.event_id = :event_id AND m.message_state <> 'draft' AND m.created_at_us > :since_us

-- name: due_buyer_messages() :now_us int :limit int
SELECT m.id, m.event_id, m.made_by, m.audience_kind, m.audience_key, m.subject, m.body, m.message_state,
  m.created_at_us, m.recipients, m.last_fence, m.all_queued, m.sent, m.failed, m.skipped
FROM buyer_messages AS m WHERE m.message_state = 'sending' AND m.next_at_us <= :now_us
ORDER BY m.next_at_us, m.id LIMIT :limit

-- name: move_buyer_messages(id text, next_at_us int)
UPDATE buyer_messages AS m SET next_at_us = r.next_at_us FROM :rows WHERE m.id = r.id

-- name: advance_buyer_messages(id text, last_fence int, all_queued int)
UPDATE buyer_messages AS m SET last_fence = r.last_fence, all_queued = r.all_queued FROM :rows WHERE m.id = r.id

-- name: finish_buyer_messages(id text, recipients int, sent int, failed int, skipped int)
UPDATE buyer_messages AS m SET message_state = 'sent', recipients = r.recipients, sent = r.sent, failed = r.failed,
  skipped = r.skipped
FROM :rows WHERE m.id = r.id AND m.message_state NOT IN ('draft', 'sent')

-- name: bookings_to_write_to() :event_id text :after int :bought_by_us int :booking_id text :limit int
-- The next bookings in the order of their fences, which never changes.
SELECT b.fence, b.id FROM bookings AS b
WHERE b.event_id = :event_id AND b.fence > :after AND b.state = 'confirmed'
  AND coalesce(b.confirmed_at_us, 0) <= :bought_by_us AND (:booking_id = '' OR b.id = :booking_id)
ORDER BY b.fence LIMIT :limit

-- name: holders_of_bookings(id text) :first int :end int :tier text :plan_hash text
-- Who has the valid tickets of these bookings, per ticket.
SELECT b.fence, b.id, b.fan, t.transfer_id,
  CASE WHEN t.transfer_id = '' THEN coalesce(c.email, '') ELSE coalesce(x.email, '') END
FROM :rows :event_of r.id JOIN bookings AS b ON b.id = r.id{ AND b.event_id = d.event_id}
JOIN tickets AS t ON t.booking_id = b.id{ AND t.event_id = b.event_id}
LEFT JOIN contacts AS c ON c.fan = b.fan
LEFT JOIN ticket_transfers AS x ON x.id = t.transfer_id
WHERE t.ticket_state = 'valid' AND t.seat_index >= :first AND t.seat_index < :end
  AND (:tier = '' OR EXISTS (SELECT 1 FROM seats AS s
    WHERE s.plan_hash = :plan_hash AND s.seat_index = t.seat_index AND s.tier = :tier))
ORDER BY b.fence, t.seat_index

-- name: count_ticket_holders() :event_id text :first int :end int :tier text :plan_hash text :booking_id text
-- Addresses, and holders without one.
SELECT count(DISTINCT CASE WHEN h.address <> '' THEN h.address END),
  count(DISTINCT CASE WHEN h.address = '' THEN h.holder END)
FROM (
  SELECT b.id || t.transfer_id AS holder,
    CASE WHEN t.transfer_id = '' THEN coalesce(c.email, '') ELSE coalesce(x.email, '') END AS address
  FROM tickets AS t JOIN bookings AS b ON b.id = t.booking_id{ AND b.event_id = t.event_id}
  LEFT JOIN contacts AS c ON c.fan = b.fan
  LEFT JOIN ticket_transfers AS x ON x.id = t.transfer_id
  WHERE t.event_id = :event_id AND t.ticket_state = 'valid' AND b.state = 'confirmed'
    AND t.seat_index >= :first AND t.seat_index < :end AND (:booking_id = '' OR b.id = :booking_id)
    AND (:tier = '' OR EXISTS (SELECT 1 FROM seats AS s
      WHERE s.plan_hash = :plan_hash AND s.seat_index = t.seat_index AND s.tier = :tier))
) AS h

-- name: first_ticket_holder() :event_id text :first int :end int :tier text :plan_hash text :booking_id text
-- One of those who have an address.
SELECT b.fence, b.id, b.fan, t.transfer_id,
  CASE WHEN t.transfer_id = '' THEN coalesce(c.email, '') ELSE coalesce(x.email, '') END
FROM tickets AS t JOIN bookings AS b ON b.id = t.booking_id{ AND b.event_id = t.event_id}
LEFT JOIN contacts AS c ON c.fan = b.fan
LEFT JOIN ticket_transfers AS x ON x.id = t.transfer_id
WHERE t.event_id = :event_id AND t.ticket_state = 'valid' AND b.state = 'confirmed'
  AND t.seat_index >= :first AND t.seat_index < :end AND (:booking_id = '' OR b.id = :booking_id)
  AND (:tier = '' OR EXISTS (SELECT 1 FROM seats AS s
    WHERE s.plan_hash = :plan_hash AND s.seat_index = t.seat_index AND s.tier = :tier))
  AND CASE WHEN t.transfer_id = '' THEN coalesce(c.email, '') ELSE coalesce(x.email, '') END <> ''
ORDER BY t.seat_index LIMIT 1

-- name: mails_of_messages(lane text) :not_needed text
-- How many mails per state; those never tried, and those that were not needed any more, by themselves.
SELECT d.delivery_state, CASE WHEN d.attempts = 0 THEN 1 ELSE 0 END,
  CASE WHEN d.last_error = :not_needed THEN 1 ELSE 0 END, count(*)
FROM :rows JOIN deliveries AS d ON d.lane = r.lane WHERE d.kind = 'buyer_message'
GROUP BY 1, 2, 3

-- name: forget_messages_to(fan text)
-- Of a person who asks to be forgotten: what was written to their bookings alone.
UPDATE buyer_messages SET subject = '', body = '' WHERE audience_kind = 'booking' AND audience_key IN (
  SELECT b.id FROM :rows JOIN bookings AS b ON b.fan = r.fan)
