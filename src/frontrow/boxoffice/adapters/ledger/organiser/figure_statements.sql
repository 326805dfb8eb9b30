-- name: bookings_by_state() :event_id text
SELECT state, currency, count(*), sum(seat_count), sum(amount_minor) FROM bookings WHERE event_id = :event_id
GROUP BY state, currency ORDER BY state, currency

-- name: taken_by_run(run int, first int) :event_id text :now_us int
-- Taken seats by run of the plan (seats side by side in one section and tier, numbered as they lie) and whether sold.
-- Runs and seats in one order: a seat belongs to the last run that began before it. (A join by ranges compared every
-- seat with every section: 2.7 s for 50,000 seats on PostgreSQL.)
SELECT seen.in_run, seen.is_sold, count(*), sum(seen.price_minor) FROM (
  SELECT max(marks.run) OVER (ORDER BY marks.seat_index, marks.is_seat) AS in_run, marks.is_seat, marks.is_sold,
    marks.price_minor
  FROM (
    SELECT r.first AS seat_index, r.run AS run, 0 AS is_seat, 0 AS is_sold, 0 AS price_minor FROM :rows
    UNION ALL
    SELECT s.seat_index, -1, 1, CASE WHEN b.state = 'confirmed' THEN 1 ELSE 0 END, s.price_minor
    FROM booking_seats AS s JOIN bookings AS b ON b.id = s.booking_id{ AND b.event_id = s.event_id}
    WHERE s.event_id = :event_id AND s.active = 1 AND (b.state = 'confirmed' OR b.hold_expires_at_us > :now_us)
  ) AS marks) AS seen
WHERE seen.is_seat = 1 GROUP BY seen.in_run, seen.is_sold

-- name: payments_by_state() :event_id text
SELECT p.payment_state, p.currency, count(*), sum(p.amount_minor), count(DISTINCT p.booking_id)
FROM bookings AS b JOIN payments AS p ON p.booking_id = b.id{ AND p.event_id = b.event_id}
WHERE b.event_id = :event_id GROUP BY p.payment_state, p.currency ORDER BY p.payment_state, p.currency

-- name: refunds_by_state() :event_id text
SELECT f.refund_state, f.currency, count(*), sum(f.amount_minor), sum(f.fee_minor)
FROM bookings AS b JOIN refunds AS f ON f.booking_id = b.id{ AND f.event_id = b.event_id}
WHERE b.event_id = :event_id GROUP BY f.refund_state, f.currency ORDER BY f.refund_state, f.currency

-- name: held_over_time() :event_id text :from_us int :to_us int :step_us int
SELECT (created_at_us - :from_us) / :step_us AS bucket, count(*), sum(seat_count) FROM bookings
WHERE event_id = :event_id AND created_at_us >= :from_us AND created_at_us < :to_us GROUP BY bucket ORDER BY bucket

-- name: sold_over_time() :event_id text :from_us int :to_us int :step_us int
SELECT (confirmed_at_us - :from_us) / :step_us AS bucket, count(*), sum(seat_count), sum(amount_minor) FROM bookings
WHERE event_id = :event_id AND confirmed_at_us >= :from_us AND confirmed_at_us < :to_us GROUP BY bucket ORDER BY bucket

-- name: refunded_over_time() :event_id text :from_us int :to_us int :step_us int
SELECT (f.created_at_us - :from_us) / :step_us AS bucket, count(*), sum(f.amount_minor)
FROM bookings AS b JOIN refunds AS f ON f.booking_id = b.id{ AND f.event_id = b.event_id}
WHERE b.event_id = :event_id AND f.created_at_us >= :from_us AND f.created_at_us < :to_us GROUP BY bucket
  ORDER BY bucket

-- name: sold_span() :event_id text
SELECT coalesce(min(created_at_us), 0), coalesce(max(changed_at_us), 0) FROM bookings WHERE event_id = :event_id

-- name: purchase_times() :event_id text :since_us int
-- From the hold to the confirmation: how many, and the durations at 50, 95 and 99 percent.
SELECT ranked.total, ranked.place, ranked.took_us FROM (
  SELECT confirmed_at_us - created_at_us AS took_us, count(*) OVER () AS total,
    row_number() OVER (ORDER BY confirmed_at_us - created_at_us) AS place
  FROM bookings WHERE event_id = :event_id AND confirmed_at_us >= :since_us) AS ranked
WHERE ranked.place IN ((ranked.total * 50 + 99) / 100, (ranked.total * 95 + 99) / 100, (ranked.total * 99 + 99) / 100)
ORDER BY ranked.place

-- name: newest_fence() :event_id text
SELECT coalesce(max(fence), 0) FROM bookings WHERE event_id = :event_id

-- name: held_since() :event_id text :fence int
-- Bookings made after that fence, for live figures.
SELECT count(*), coalesce(sum(seat_count), 0), coalesce(max(fence), :fence) FROM bookings
WHERE event_id = :event_id AND fence > :fence
