-- name: sold_by_quarter() :event_id text :quarter_us int :limit int
-- The newest quarters of an hour in which something was sold, newest first. The amount is what was paid: a refund of
-- some seats makes the booking's own amount smaller, and is a line of its own.
SELECT b.confirmed_at_us / :quarter_us AS quarter, count(*), sum(b.seat_count),
  sum(coalesce((SELECT max(p.amount_minor) FROM payments AS p
    WHERE p.booking_id = b.id{ AND p.event_id = b.event_id} AND p.payment_state = 'captured'), b.amount_minor))
FROM bookings AS b
WHERE b.event_id = :event_id AND b.confirmed_at_us > 0 GROUP BY quarter ORDER BY quarter DESC LIMIT :limit

-- name: refunded_by_quarter() :event_id text :quarter_us int :limit int
SELECT f.created_at_us / :quarter_us AS quarter, count(*), sum(f.amount_minor)
FROM bookings AS b JOIN refunds AS f ON f.booking_id = b.id{ AND f.event_id = b.event_id}
WHERE b.event_id = :event_id AND f.refund_state NOT IN ('failed', 'moot')
GROUP BY quarter ORDER BY quarter DESC LIMIT :limit

-- name: sold_by_channel() :event_id text :sale_starts_at_us int
-- How bookings were sold: by staff (for money, or given to guests), from an offer of the waitlist, before the general
-- sale, or in it.
SELECT sold.channel, count(*), sum(sold.seat_count), sum(sold.amount_minor) FROM (
  SELECT b.seat_count, coalesce((SELECT max(p.amount_minor) FROM payments AS p
    WHERE p.booking_id = b.id{ AND p.event_id = b.event_id} AND p.payment_state = 'captured'), b.amount_minor)
    AS amount_minor, CASE
    WHEN substr(b.fan, 1, 5) = 'desk:' THEN CASE
      WHEN EXISTS (SELECT 1 FROM payments AS p
        WHERE p.booking_id = b.id{ AND p.event_id = b.event_id} AND p.provider = 'external') THEN 'box_office'
      ELSE 'guests' END
    WHEN EXISTS (SELECT 1 FROM offers AS o WHERE o.event_id = b.event_id AND o.booking_id = b.id) THEN 'waitlist'
    WHEN b.created_at_us < :sale_starts_at_us THEN 'presale'
    ELSE 'online' END AS channel
  FROM bookings AS b WHERE b.event_id = :event_id AND b.confirmed_at_us > 0) AS sold
GROUP BY sold.channel ORDER BY sold.channel

-- name: checked_in() :event_id text
SELECT count(*), count(scanned_at_us) FROM tickets WHERE event_id = :event_id AND ticket_state = 'valid'

-- name: checked_in_by_quarter() :event_id text :quarter_us int :limit int
SELECT scanned_at_us / :quarter_us AS quarter, count(*) FROM tickets
WHERE event_id = :event_id AND ticket_state = 'valid' AND scanned_at_us > 0
GROUP BY quarter ORDER BY quarter LIMIT :limit
