-- name: take_keys(scope text, key text, request_hash text, booking_id text, now_us int) row by row
-- Stores idempotency keys. A known key is left out of the result.
INSERT INTO idempotency_keys (scope, key, request_hash, booking_id, created_at_us)
SELECT r.scope, r.key, r.request_hash, r.booking_id, r.now_us FROM :rows WHERE true ORDER BY r.scope, r.key
ON CONFLICT DO NOTHING
RETURNING scope, key

-- name: known_keys(scope text, key text) row by row
SELECT k.scope, k.key, k.request_hash, k.booking_id FROM :rows CROSS JOIN idempotency_keys AS k
WHERE k.scope = r.scope AND k.key = r.key

-- name: forget_keys(scope text, key text)
-- A refused request may be sent again under its key.
DELETE FROM idempotency_keys WHERE (scope, key) IN (SELECT r.scope, r.key FROM :rows)

-- name: keys_page() :scope text :key text :limit int
SELECT scope, key, created_at_us FROM idempotency_keys WHERE (scope, key) > (:scope, :key)
  ORDER BY scope, key LIMIT :limit

-- name: add_facts(fact text, body text, event_id text, booking_id text, at_us int) row by row
INSERT INTO outbox (fact, body, event_id, booking_id, at_us)
SELECT r.fact, r.body, r.event_id, r.booking_id, r.at_us FROM :rows

-- name: due_facts() :now_us int :limit int
SELECT number FROM outbox WHERE published_at_us IS NULL AND leased_until_us <= :now_us
ORDER BY number LIMIT :limit :skip_locked

-- name: claimed_facts(number int, until_us int)
SELECT o.number FROM :rows CROSS JOIN outbox AS o
WHERE o.number = r.number AND o.leased_until_us = r.until_us AND coalesce(o.published_at_us, 0) = 0

-- name: claim_facts(number int, until_us int)
UPDATE outbox AS o SET leased_until_us = r.until_us FROM :rows WHERE o.number = r.number
RETURNING o.number, o.body

-- name: facts_published(number int, now_us int)
UPDATE outbox AS o SET published_at_us = r.now_us FROM :rows WHERE o.number = r.number

-- name: missed_facts() :source text :after int :since_us int :newest int :limit int
SELECT o.number, o.body FROM outbox AS o
WHERE o.number > :after AND o.number > (SELECT max(n.number) FROM outbox AS n) - :newest
  AND o.published_at_us >= :since_us AND NOT EXISTS
  (SELECT 1 FROM inbox AS i WHERE i.source = :source AND i.message_id = CAST(o.number AS text))
ORDER BY o.number LIMIT :limit

-- name: purge_facts() :before_us int :limit int
-- Published facts stay in the audit log; here they can be deleted.
DELETE FROM outbox WHERE number IN
  (SELECT number FROM outbox WHERE published_at_us IS NOT NULL AND published_at_us < :before_us ORDER BY number
    LIMIT :limit)

-- name: add_audit(chain text, seq int, at_us int, body text, prev_hash text, hash text)
INSERT INTO audit_log (chain, seq, at_us, body, prev_hash, hash)
SELECT r.chain, r.seq, r.at_us, r.body, r.prev_hash, r.hash FROM :rows

-- name: set_audit_head(chain text, seq int, hash text)
INSERT INTO audit_heads (chain, seq, hash) SELECT r.chain, r.seq, r.hash FROM :rows WHERE true
ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash

-- name: record(fact text, body text, event_id text, booking_id text, fact_at_us int) :chain text :seq int :at_us int :entry text :prev_hash text :hash text
-- The three statements above in one round trip. (PostgreSQL only; SQLite has no such WITH.)
WITH facts AS (
  INSERT INTO outbox (fact, body, event_id, booking_id, at_us)
  SELECT r.fact, r.body, r.event_id, r.booking_id, r.fact_at_us FROM :rows
), entry AS (
  INSERT INTO audit_log (chain, seq, at_us, body, prev_hash, hash)
  VALUES (:chain, :seq, :at_us, :entry, :prev_hash, :hash)
)
INSERT INTO audit_heads (chain, seq, hash) VALUES (:chain, :seq, :hash)
ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash

-- name: audit_page() :chain text :after int :limit int
-- The chain in order, page by page.
SELECT chain, seq, at_us, body, prev_hash, hash FROM audit_log
WHERE chain > :chain OR (chain = :chain AND seq > :after) ORDER BY chain, seq LIMIT :limit

-- name: audit_heads()
SELECT chain, seq, hash FROM audit_heads ORDER BY chain

-- name: add_inbox(source text, message_id text, now_us int)
-- Records messages. One that was seen before is left out of the result.
INSERT INTO inbox (source, message_id, received_at_us)
SELECT r.source, r.message_id, r.now_us FROM :rows WHERE true ORDER BY r.source, r.message_id
ON CONFLICT DO NOTHING
RETURNING source, message_id
