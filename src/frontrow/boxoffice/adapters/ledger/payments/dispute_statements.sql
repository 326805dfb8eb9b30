-- name: add_disputes(provider text, ref text, payment_ref text, payment_id text, booking_id text, event_id text, amount_minor int, currency text, dispute_state text, reason text, answer_by_us int, opened_at_us int, changed_at_us int)
INSERT INTO disputes (provider, ref, payment_ref, payment_id, booking_id, event_id, amount_minor, currency,
  dispute_state, reason, answer_by_us, opened_at_us, changed_at_us)
SELECT r.provider, r.ref, r.payment_ref, r.payment_id, r.booking_id, r.event_id, r.amount_minor, r.currency,
  r.dispute_state, r.reason, r.answer_by_us, r.opened_at_us, r.changed_at_us FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING ref

-- name: move_disputes(provider text, ref text, was text, dispute_state text, changed_at_us int)
-- One row per state that a dispute may come from: a late notice moves nothing back.
UPDATE disputes AS d SET dispute_state = r.dispute_state, changed_at_us = r.changed_at_us FROM :rows
WHERE d.provider = r.provider AND d.ref = r.ref AND d.dispute_state = r.was
RETURNING d.ref

-- name: disputes_of_booking() :booking_id text
SELECT provider, ref, payment_ref, payment_id, booking_id, event_id, amount_minor, currency, dispute_state, reason,
  answer_by_us, opened_at_us, changed_at_us
FROM disputes WHERE booking_id = :booking_id AND booking_id <> '' ORDER BY opened_at_us, ref

-- name: dispute_by_payment_ref() :provider text :payment_ref text
SELECT provider, ref, payment_ref, payment_id, booking_id, event_id, amount_minor, currency, dispute_state, reason,
  answer_by_us, opened_at_us, changed_at_us
FROM disputes WHERE payment_ref = :payment_ref AND provider = :provider ORDER BY opened_at_us, ref

-- name: disputes_page() :organiser_id text :event_id text :limit int
-- Disputes of an organiser, the newest first. An empty event means any, an empty organiser everybody's.
SELECT d.provider, d.ref, d.payment_ref, d.payment_id, d.booking_id, d.event_id, d.amount_minor, d.currency,
  d.dispute_state, d.reason, d.answer_by_us, d.opened_at_us, d.changed_at_us
FROM disputes AS d LEFT JOIN events AS e ON e.id = d.event_id
WHERE (:organiser_id = '' OR e.organiser_id = :organiser_id) AND (:event_id = '' OR d.event_id = :event_id)
ORDER BY d.opened_at_us DESC, d.ref LIMIT :limit

-- name: dispute_mark() :event_id text
SELECT count(*), COALESCE(max(changed_at_us), 0) FROM disputes WHERE event_id = :event_id

-- name: disputed_tickets() :event_id text :limit int
SELECT DISTINCT t.id FROM disputes AS d JOIN tickets AS t ON t.booking_id = d.booking_id{ AND t.event_id = d.event_id}
WHERE d.event_id = :event_id AND d.booking_id <> '' AND d.dispute_state IN ('open', 'lost')
  AND t.ticket_state = 'valid' ORDER BY t.id LIMIT :limit

-- name: wake_waiting_refunds(booking_id text, now_us int)
-- Refunds that waited for the end of a dispute.
UPDATE refunds AS f SET retry_at_us = r.now_us, version = f.version + 1
FROM :rows :event_of r.booking_id
WHERE f.booking_id = r.booking_id{ AND f.event_id = d.event_id} AND f.refund_state = 'asked'
  AND f.retry_at_us > r.now_us
