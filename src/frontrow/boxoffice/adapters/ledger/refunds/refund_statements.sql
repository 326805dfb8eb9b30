-- name: add_refunds(id text, booking_id text, payment_id text, number int, amount_minor int, currency text, seats text, fee_minor int, refund_state text, provider_ref text, reason text, call int, tries int, retry_at_us int, version int, created_at_us int, changed_at_us int, key text, event_id text, lines text)
INSERT INTO refunds (id, booking_id, payment_id, number, amount_minor, currency, seats, fee_minor, refund_state,
  provider_ref, reason, call, tries, retry_at_us, version, created_at_us, changed_at_us, idempotency_key,
  event_id, refund_lines)
SELECT r.id, r.booking_id, r.payment_id, r.number, r.amount_minor, r.currency, r.seats, r.fee_minor, r.refund_state,
  r.provider_ref, r.reason, r.call, r.tries, r.retry_at_us, r.version, r.created_at_us, r.changed_at_us, r.key,
  r.event_id, r.lines
FROM :rows WHERE true ORDER BY r.id
ON CONFLICT DO NOTHING
RETURNING id

-- name: set_refunds(id text, refund_state text, provider_ref text, reason text, call int, tries int, retry_at_us int, version int, changed_at_us int, failure text, booking_id text)
UPDATE refunds AS f SET refund_state = r.refund_state, provider_ref = r.provider_ref, reason = r.reason, call = r.call,
  tries = r.tries, retry_at_us = r.retry_at_us, version = r.version, changed_at_us = r.changed_at_us,
    failure = r.failure
FROM :rows :event_of r.booking_id
WHERE f.id = r.id{ AND f.event_id = d.event_id} AND f.version = r.version - 1
RETURNING f.id

-- name: refunds_by_id(id text, booking_id text)
SELECT :refund FROM :rows :event_of r.booking_id CROSS JOIN refunds AS f
WHERE f.id = r.id{ AND f.event_id = d.event_id}

-- name: refunds_of_bookings(id text)
SELECT :refund FROM :rows :event_of r.id CROSS JOIN refunds AS f
WHERE f.booking_id = r.id{ AND f.event_id = d.event_id} ORDER BY f.booking_id, f.number

-- name: due_refunds() :now_us int :limit int
SELECT id, booking_id FROM refunds WHERE retry_at_us > 0 AND retry_at_us <= :now_us
ORDER BY retry_at_us LIMIT :limit :skip_locked

-- name: claim_refunds(id text, booking_id text, until_us int)
UPDATE refunds AS f SET retry_at_us = r.until_us FROM :rows :event_of r.booking_id
WHERE f.id = r.id{ AND f.event_id = d.event_id}
RETURNING :refund
