-- name: operating_figures()
-- Figures for dashboards: counts by state, and the age of what waits. No names and no amounts.
SELECT 'bookings' AS what, state AS which, count(*) AS number FROM bookings GROUP BY state
UNION ALL SELECT 'payments', payment_state, count(*) FROM payments GROUP BY payment_state
UNION ALL SELECT 'refunds', refund_state, count(*) FROM refunds GROUP BY refund_state
UNION ALL SELECT 'waitlist', entry_state, count(*) FROM waitlist GROUP BY entry_state
UNION ALL SELECT 'offers', offer_state, count(*) FROM offers GROUP BY offer_state
UNION ALL SELECT 'deliveries', delivery_state, count(*) FROM deliveries GROUP BY delivery_state
UNION ALL SELECT 'seats', 'active', count(*) FROM booking_seats WHERE active = 1
UNION ALL SELECT 'outbox', 'unpublished', count(*) FROM outbox WHERE published_at_us IS NULL
UNION ALL SELECT 'outbox', 'oldest_us', COALESCE(min(at_us), 0) FROM outbox WHERE published_at_us IS NULL
