-- name: lock_payments(id text, booking_id text)
-- Locks payments until the transaction ends, in the order of ids to avoid deadlocks.
SELECT :payment FROM payments AS p
WHERE ({p.event_id, }p.id) IN (SELECT {d.event_id, }r.id FROM :rows :event_of r.booking_id)
ORDER BY p.id :for_update

-- name: add_payments(id text, booking_id text, attempt int, provider text, amount_minor int, currency text, payment_state text, provider_ref text, method text, reason text, call int, tries int, retry_at_us int, version int, created_at_us int, changed_at_us int, declines int, failure text, account text, paid_with text, agreed_at_us int, offered text, fee_minor int, transfer_to text, reminded_at_us int, key text, event_id text)
-- A booking with another payment that is not over keeps that one: left out of the answer
-- (one_live_payment_per_booking).
INSERT INTO payments (id, booking_id, attempt, provider, amount_minor, currency, payment_state, provider_ref, method,
  reason, call, tries, retry_at_us, version, created_at_us, changed_at_us, declines, failure, account,
  paid_with, agreed_at_us, offered, fee_minor, transfer_to, reminded_at_us, idempotency_key, event_id)
SELECT r.id, r.booking_id, r.attempt, r.provider, r.amount_minor, r.currency, r.payment_state, r.provider_ref,
  r.method, r.reason, r.call, r.tries, r.retry_at_us, r.version, r.created_at_us, r.changed_at_us, r.declines,
  r.failure, r.account, r.paid_with, r.agreed_at_us, r.offered, r.fee_minor, r.transfer_to,
  r.reminded_at_us, r.key, r.event_id
FROM :rows WHERE true ORDER BY r.id
ON CONFLICT DO NOTHING
RETURNING id

-- name: set_payments(id text, payment_state text, provider_ref text, method text, reason text, call int, tries int, retry_at_us int, version int, changed_at_us int, declines int, failure text, paid_with text, agreed_at_us int, transfer_to text, reminded_at_us int, booking_id text)
-- Compare and set: written over the previous version, or not at all.
UPDATE payments AS p SET payment_state = r.payment_state, provider_ref = r.provider_ref, method = r.method,
  reason = r.reason, call = r.call, tries = r.tries, retry_at_us = r.retry_at_us, version = r.version,
  changed_at_us = r.changed_at_us, declines = r.declines, failure = r.failure, paid_with = r.paid_with,
  agreed_at_us = r.agreed_at_us, transfer_to = r.transfer_to, reminded_at_us = r.reminded_at_us
FROM :rows :event_of r.booking_id
WHERE p.id = r.id{ AND p.event_id = d.event_id} AND p.version = r.version - 1
RETURNING p.id

-- name: payments_by_id(id text)
SELECT :payment FROM :rows CROSS JOIN payments AS p WHERE p.id = r.id

-- name: payments_of_bookings(id text)
SELECT :payment FROM :rows :event_of r.id CROSS JOIN payments AS p
WHERE p.booking_id = r.id{ AND p.event_id = d.event_id} ORDER BY p.booking_id, p.attempt

-- name: payment_by_ref() :provider text :ref text
SELECT :payment FROM payments AS p WHERE p.provider_ref = :ref AND p.provider = :provider

-- name: due_payments() :now_us int :limit int
-- Payments that another worker is leasing are skipped.
SELECT id, booking_id FROM payments WHERE retry_at_us > 0 AND retry_at_us <= :now_us
ORDER BY retry_at_us LIMIT :limit :skip_locked

-- name: claim_payments(id text, booking_id text, until_us int)
UPDATE payments AS p SET retry_at_us = r.until_us FROM :rows :event_of r.booking_id
WHERE p.id = r.id{ AND p.event_id = d.event_id}
RETURNING :payment

-- name: put_off_payments() :now_us int :first_us int :second_us int :third_us int :last_us int :limit int
-- Payments that an outage put off. One that a driver has claimed is due later than its retry would have been.
SELECT id, booking_id FROM payments
WHERE retry_at_us > :now_us AND tries > 0
  AND payment_state IN ('creating', 'open', 'authorising', 'action', 'capturing', 'voiding')
  AND retry_at_us <= changed_at_us + CASE tries WHEN 1 THEN :first_us WHEN 2 THEN :second_us WHEN 3 THEN :third_us
    ELSE :last_us END
ORDER BY changed_at_us LIMIT :limit :skip_locked

-- name: wake_payments(id text, booking_id text, now_us int)
-- With one try, a claim of 30 s is later than the retry of 5 s: nobody takes it for put off.
UPDATE payments AS p SET retry_at_us = r.now_us, changed_at_us = r.now_us, tries = 1, version = p.version + 1
FROM :rows :event_of r.booking_id
WHERE p.id = r.id{ AND p.event_id = d.event_id}

-- name: payments_page(from_us int, until_us int) :after text :limit int
-- The payments created in one of the spans, and all that are unfinished or lapsed.
SELECT :payment FROM payments AS p
WHERE p.id > :after AND (
  p.retry_at_us > 0 OR p.payment_state = 'lapsed'
  OR EXISTS (SELECT 1 FROM :rows WHERE p.created_at_us > r.from_us AND p.created_at_us <= r.until_us))
ORDER BY p.id LIMIT :limit

-- name: lock_bookings(id text)
SELECT :booking FROM bookings AS b
WHERE ({b.event_id, }b.id) IN (SELECT {d.event_id, }r.id FROM :rows :event_of r.id)
ORDER BY b.id :for_update

-- name: shrink_bookings(booking_id text, seat_count int, seats text, amount_minor int, now_us int)
-- A partial refund: what is left of the booking. The caller has locked the row.
UPDATE bookings AS b SET seat_count = r.seat_count, seats = r.seats, amount_minor = r.amount_minor,
  changed_at_us = r.now_us
FROM :rows :event_of r.booking_id WHERE b.id = r.booking_id{ AND b.event_id = d.event_id}
RETURNING :booking

-- name: set_price_lines(booking_id text, price_lines text)
-- The lines of the price after seats were moved. The caller has locked the row.
UPDATE bookings AS b SET price_lines = r.price_lines
FROM :rows :event_of r.booking_id WHERE b.id = r.booking_id{ AND b.event_id = d.event_id}

-- name: free_some_seats(booking_id text, seat_index int)
UPDATE booking_seats SET active = 0
WHERE ({event_id, }booking_id, seat_index) IN (
  SELECT {d.event_id, }r.booking_id, r.seat_index FROM :rows :event_of r.booking_id)
RETURNING booking_id, seat_index

-- name: seat_prices_of(id text)
SELECT s.booking_id, s.seat_index, s.price_minor FROM :rows :event_of r.id CROSS JOIN booking_seats AS s
WHERE s.booking_id = r.id{ AND s.event_id = d.event_id} AND coalesce(s.active, 0) = 1
ORDER BY s.booking_id, s.seat_index

-- name: live_bookings() :event_id text :after text :limit int
SELECT :booking FROM bookings AS b
WHERE b.event_id = :event_id AND b.id > :after AND b.state IN ('held', 'paying', 'confirmed') ORDER BY b.id LIMIT :limit

-- name: visit_holds() :event_id text :now_us int :longest_us int :limit int
-- Seats that wait for slow money are held for longer than any hold lasts: they keep no visit.
-- Servers before schema 41 write the visit into `session`. For an offer or a sale at the box office they write another
-- id there, which the waiting room ignores.
SELECT coalesce(b.visit_id, b.session), b.id, b.hold_expires_at_us FROM bookings AS b
WHERE b.event_id = :event_id AND b.state IN ('held', 'paying') AND b.hold_expires_at_us > :now_us
  AND (b.state = 'held' OR b.hold_expires_at_us - coalesce(b.payment_begun_at_us, b.created_at_us) <= :longest_us)
  AND coalesce(b.visit_id, b.session) <> ''
ORDER BY b.hold_expires_at_us LIMIT :limit

-- name: inbox_has() :source text :message_id text
SELECT 1 FROM inbox WHERE source = :source AND message_id = :message_id

-- name: inbox_time() :source text :message_id text
SELECT received_at_us FROM inbox WHERE source = :source AND message_id = :message_id
