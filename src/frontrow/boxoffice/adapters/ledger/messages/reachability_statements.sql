-- name: put_phone_codes(fan text, phone text, digest text, ends_at_us int)
INSERT INTO phone_codes (fan, phone, digest, tries, ends_at_us)
SELECT r.fan, r.phone, r.digest, 0, r.ends_at_us FROM :rows WHERE true
ON CONFLICT (fan) DO UPDATE SET phone = excluded.phone, digest = excluded.digest, tries = 0,
  ends_at_us = excluded.ends_at_us

-- name: try_phone_codes(fan text, now_us int, max_tries int)
-- Counts one try of a code that is still good. Its row is locked until the transaction ends.
UPDATE phone_codes AS c SET tries = c.tries + 1 FROM :rows
WHERE c.fan = r.fan AND c.ends_at_us > r.now_us AND c.tries < r.max_tries
RETURNING c.phone, c.digest

-- name: drop_phone_codes(fan text)
DELETE FROM phone_codes WHERE fan IN (SELECT r.fan FROM :rows)

-- name: purge_phone_codes() :now_us int :limit int
DELETE FROM phone_codes WHERE fan IN (SELECT fan FROM phone_codes WHERE ends_at_us < :now_us LIMIT :limit)

-- name: prove_phones(fan text, phone text, now_us int)
UPDATE contacts AS c SET phone = r.phone, proven_phone = r.phone, changed_at_us = r.now_us
FROM :rows WHERE c.fan = r.fan

-- name: block_addresses(channel text, address_digest text, reason text, detail text, since_us int)
INSERT INTO blocked_addresses (channel, address_digest, reason, detail, since_us)
SELECT r.channel, r.address_digest, r.reason, r.detail, r.since_us FROM :rows WHERE true
ON CONFLICT (channel, address_digest) DO UPDATE SET reason = excluded.reason, detail = excluded.detail
WHERE blocked_addresses.reason <> 'complained'

-- name: unblock_addresses(channel text, address_digest text, reason text)
-- An empty reason is any.
DELETE FROM blocked_addresses WHERE EXISTS (SELECT 1 FROM :rows WHERE r.channel = blocked_addresses.channel
  AND r.address_digest = blocked_addresses.address_digest AND r.reason IN ('', blocked_addresses.reason))
RETURNING channel

-- name: blocked_of(channel text, address_digest text)
SELECT b.channel, b.address_digest, b.reason, b.detail, b.since_us FROM :rows CROSS JOIN blocked_addresses AS b
WHERE b.channel = r.channel AND b.address_digest = r.address_digest

-- name: drop_push_devices(fan text, endpoint text)
DELETE FROM push_subscriptions WHERE EXISTS (SELECT 1 FROM :rows
  WHERE r.fan = push_subscriptions.fan AND r.endpoint = push_subscriptions.endpoint)
