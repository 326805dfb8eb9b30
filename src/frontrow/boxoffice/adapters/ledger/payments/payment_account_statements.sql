-- name: end_payment_accounts(organiser_id text, provider text, account text, now_us int)
-- The organiser's other accounts take no new payments.
UPDATE payment_accounts SET ended_at_us = r.now_us, changed_at_us = r.now_us FROM :rows
WHERE payment_accounts.organiser_id = r.organiser_id AND payment_accounts.ended_at_us = 0
  AND NOT (payment_accounts.provider = r.provider AND payment_accounts.account = r.account)

-- name: put_payment_accounts(provider text, account text, organiser_id text, account_state text, reason text, fee_basis_points int, made_at_us int, changed_at_us int, ended_at_us int)
INSERT INTO payment_accounts (provider, account, organiser_id, account_state, reason, fee_basis_points, made_at_us,
  changed_at_us, ended_at_us)
SELECT r.provider, r.account, r.organiser_id, r.account_state, r.reason, r.fee_basis_points, r.made_at_us,
  r.changed_at_us, r.ended_at_us FROM :rows WHERE true
ON CONFLICT (provider, account) DO UPDATE SET account_state = excluded.account_state, reason = excluded.reason,
  fee_basis_points = excluded.fee_basis_points, changed_at_us = excluded.changed_at_us,
  ended_at_us = excluded.ended_at_us
WHERE payment_accounts.organiser_id = excluded.organiser_id
RETURNING account

-- name: payment_accounts()
SELECT organiser_id, provider, account, account_state, reason, fee_basis_points, made_at_us, changed_at_us, ended_at_us
FROM payment_accounts ORDER BY organiser_id, made_at_us, account

-- name: money_taken_by_account() :organiser_id text
SELECT p.provider, p.account, p.currency, sum(p.amount_minor), sum(p.fee_minor)
FROM payments AS p JOIN bookings AS b ON b.id = p.booking_id JOIN events AS e ON e.id = b.event_id
WHERE e.organiser_id = :organiser_id AND p.payment_state = 'captured'
GROUP BY p.provider, p.account, p.currency ORDER BY p.provider, p.account, p.currency

-- name: money_refunded_by_account() :organiser_id text
SELECT p.provider, p.account, p.currency,
  sum(CASE WHEN f.refund_state IN ('done', 'pending') THEN f.amount_minor ELSE 0 END),
  sum(CASE WHEN f.refund_state IN ('asked', 'pending', 'failed') THEN 1 ELSE 0 END)
FROM refunds AS f JOIN payments AS p ON p.id = f.payment_id JOIN bookings AS b ON b.id = p.booking_id
JOIN events AS e ON e.id = b.event_id
WHERE e.organiser_id = :organiser_id AND p.payment_state = 'captured'
GROUP BY p.provider, p.account, p.currency
