-- name: operating_figures()
-- Figures for dashboards: counts by state, and the age of what waits. No names and no amounts.
SELECT 'bookings' AS what, state AS which, count(*) AS number FROM bookings GROUP BY state
UNION ALL SELECT 'payments', payment_state, count(*) FROM payments GROUP BY payment_state
UNION ALL SELECT 'refunds', refund_state, count(*) FROM refunds GROUP BY refund_state
UNION ALL SELECT 'disputes', dispute_state, count(*) FROM disputes GROUP BY dispute_state
UNION ALL SELECT 'waitlist', entry_state, count(*) FROM waitlist GROUP BY entry_state
UNION ALL SELECT 'offers', offer_state, count(*) FROM offers GROUP BY offer_state
UNION ALL SELECT 'deliveries', delivery_state, count(*) FROM deliveries GROUP BY delivery_state
UNION ALL SELECT 'seats', 'active', count(*) FROM booking_seats WHERE active = 1
UNION ALL SELECT 'outbox', 'unpublished', count(*) FROM outbox WHERE published_at_us IS NULL
UNION ALL SELECT 'outbox', 'oldest_us', COALESCE(min(at_us), 0) FROM outbox WHERE published_at_us IS NULL
UNION ALL SELECT 'captures', 'waiting', count(*) FROM payments WHERE retry_at_us > 0 AND payment_state = 'capturing'
UNION ALL SELECT 'captures', 'oldest_us', COALESCE(min(b.changed_at_us), 0) FROM payments AS p
  JOIN bookings AS b ON b.id = p.booking_id WHERE p.retry_at_us > 0 AND p.payment_state = 'capturing'
UNION ALL SELECT 'payments_stuck', 'all', count(*) FROM payments WHERE retry_at_us > 0 AND tries >= 5
UNION ALL SELECT 'mails', 'waiting', count(*) FROM deliveries
  WHERE delivery_state = 'waiting' AND kind NOT IN ('webhook', 'poison')
UNION ALL SELECT 'mails', 'oldest_us', COALESCE(min(created_at_us), 0) FROM deliveries
  WHERE delivery_state = 'waiting' AND kind NOT IN ('webhook', 'poison')
