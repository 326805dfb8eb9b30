-- name: add_deliveries(kind text, lane text, dedupe text, body text, now_us int)
INSERT INTO deliveries (kind, lane, dedupe, body, delivery_state, attempts, created_at_us, next_at_us, changed_at_us)
SELECT r.kind, r.lane, r.dedupe, r.body, 'waiting', 0, r.now_us, r.now_us, r.now_us FROM :rows WHERE true
  ORDER BY r.dedupe
ON CONFLICT DO NOTHING

-- name: due_deliveries() :kind text :now_us int :per_queue int :limit int
-- The oldest of each queue (`lane`), except queues that another worker has claimed. The outer conditions are checked
-- again once a row is locked; the inner ones are as old as the statement.
SELECT number FROM deliveries
WHERE delivery_state = 'waiting' AND leased_until_us <= :now_us AND next_at_us <= :now_us AND number IN (
  SELECT ranked.number FROM (
    SELECT d.number, d.next_at_us, row_number() OVER (PARTITION BY d.lane ORDER BY d.next_at_us, d.number) AS place
    FROM deliveries AS d
    WHERE d.kind = :kind AND d.delivery_state = 'waiting' AND next_at_us <= :now_us
      AND d.lane NOT IN (SELECT busy.lane FROM deliveries AS busy
        WHERE busy.kind = :kind AND busy.delivery_state = 'waiting' AND busy.leased_until_us > :now_us)
  ) AS ranked WHERE ranked.place <= :per_queue ORDER BY ranked.next_at_us, ranked.number LIMIT :limit)
ORDER BY number :skip_locked

-- name: claimed_deliveries(number int, until_us int)
SELECT d.number FROM :rows CROSS JOIN deliveries AS d
WHERE d.number = r.number AND d.leased_until_us = r.until_us AND coalesce(d.delivery_state, '') = 'waiting'

-- name: claim_deliveries(number int, until_us int)
UPDATE deliveries AS d SET leased_until_us = r.until_us FROM :rows WHERE d.number = r.number
RETURNING d.number, d.kind, d.lane, d.dedupe, d.body, d.attempts, d.created_at_us

-- name: renew_deliveries(number int, now_us int, until_us int)
-- A claim that has ended may be somebody else's by now.
UPDATE deliveries AS d SET leased_until_us = r.until_us FROM :rows
WHERE d.number = r.number AND coalesce(d.delivery_state, '') = 'waiting' AND d.leased_until_us > r.now_us

-- name: save_delivery_results(number int, delivery_state text, attempts int, next_at_us int, last_error text, now_us int)
-- A delivery that was sent stays sent, whatever a slower worker says.
UPDATE deliveries AS d SET delivery_state = r.delivery_state, attempts = r.attempts, next_at_us = r.next_at_us,
  last_error = r.last_error, leased_until_us = 0, changed_at_us = r.now_us
FROM :rows WHERE d.number = r.number AND coalesce(d.delivery_state, '') = 'waiting'

-- name: delivery_counts() :kind text
SELECT delivery_state, count(*) FROM deliveries WHERE kind = :kind GROUP BY delivery_state

-- name: put_contacts(fan text, locale text, email text, phone text, channels text, name text, folded_name text, now_us int)
INSERT INTO contacts (fan, locale, email, phone, channels, name, folded_name, changed_at_us)
SELECT r.fan, r.locale, r.email, r.phone, r.channels, r.name, r.folded_name, r.now_us FROM :rows WHERE true
ON CONFLICT (fan) DO UPDATE SET locale = excluded.locale, email = excluded.email, phone = excluded.phone,
  channels = excluded.channels, name = excluded.name, folded_name = excluded.folded_name,
  changed_at_us = excluded.changed_at_us

-- name: contacts_by_fan(fan text)
SELECT c.fan, c.email, c.phone, c.locale, c.channels, c.name, c.proven_phone
FROM :rows CROSS JOIN contacts AS c WHERE c.fan = r.fan

-- name: drop_push(fan text)
DELETE FROM push_subscriptions WHERE fan IN (SELECT r.fan FROM :rows)

-- name: put_push(endpoint text, fan text, document text, now_us int)
INSERT INTO push_subscriptions (endpoint, fan, document, created_at_us)
SELECT r.endpoint, r.fan, r.document, r.now_us FROM :rows WHERE true
ON CONFLICT (endpoint) DO UPDATE SET fan = excluded.fan, document = excluded.document

-- name: push_of(fan text)
SELECT p.fan, p.document FROM :rows CROSS JOIN push_subscriptions AS p WHERE p.fan = r.fan ORDER BY p.endpoint

-- name: put_endpoints(id text, organiser text, event_id text, url text, secret text, facts text, active int, now_us int)
INSERT INTO webhook_endpoints (id, organiser, event_id, url, secret, facts, active, changed_at_us)
SELECT r.id, r.organiser, r.event_id, r.url, r.secret, r.facts, r.active, r.now_us FROM :rows WHERE true
ON CONFLICT (id) DO UPDATE SET url = excluded.url, secret = excluded.secret, facts = excluded.facts,
  active = excluded.active, changed_at_us = excluded.changed_at_us

-- name: endpoint_by_id() :id text
SELECT id, organiser, event_id, url, secret, facts, active FROM webhook_endpoints WHERE id = :id

-- name: unsealed_endpoints() :limit int
SELECT id, organiser, event_id, url, secret, facts, active FROM webhook_endpoints
WHERE secret NOT LIKE 'sealed:%' ORDER BY id LIMIT :limit

-- name: seal_endpoints(id text, was text, sealed text)
UPDATE webhook_endpoints AS e SET secret = r.sealed FROM :rows WHERE e.id = r.id AND e.secret = r.was

-- name: endpoints_of_event() :event_id text
SELECT id, organiser, event_id, url, secret, facts, active FROM webhook_endpoints
WHERE event_id = :event_id AND active = 1 ORDER BY id LIMIT 100

-- name: put_in_app(id text, fan text, subject text, body text, now_us int, notice text)
INSERT INTO in_app_messages (id, fan, subject, body, created_at_us, notice)
SELECT r.id, r.fan, r.subject, r.body, r.now_us, r.notice FROM :rows WHERE true ORDER BY r.id
ON CONFLICT DO NOTHING

-- name: in_app_of() :fan text :limit int
SELECT id, fan, subject, body, created_at_us, read_at_us, notice FROM in_app_messages WHERE fan = :fan
ORDER BY created_at_us DESC, id DESC LIMIT :limit
