-- name: put_wallet_keys(organiser_id text, wallet text, account text, holder text, expires_at_us int, sealed text, now_us int)
INSERT INTO wallet_keys (organiser_id, wallet, account, holder, expires_at_us, sealed, changed_at_us)
SELECT r.organiser_id, r.wallet, r.account, r.holder, r.expires_at_us, r.sealed, r.now_us FROM :rows WHERE true
ON CONFLICT (organiser_id, wallet) DO UPDATE SET account = excluded.account, holder = excluded.holder,
  expires_at_us = excluded.expires_at_us, sealed = excluded.sealed, changed_at_us = excluded.changed_at_us
RETURNING organiser_id

-- name: remove_wallet_keys(organiser_id text, wallet text)
DELETE FROM wallet_keys WHERE (organiser_id, wallet) IN (SELECT r.organiser_id, r.wallet FROM :rows)
RETURNING organiser_id

-- name: wallet_keys_of(organiser_id text)
-- The keys of organisers, one row per wallet.
SELECT k.organiser_id, k.wallet, k.account, k.holder, k.expires_at_us, k.sealed, k.changed_at_us
FROM :rows CROSS JOIN wallet_keys AS k WHERE k.organiser_id = r.organiser_id ORDER BY k.wallet
