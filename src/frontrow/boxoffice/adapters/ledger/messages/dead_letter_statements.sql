-- name: dead_letters_page() :after int :limit int
-- Dead letters: facts that a consumer could not handle, and deliveries that were given up.
SELECT number, kind, lane, dedupe, body, attempts, last_error, changed_at_us FROM deliveries
WHERE number > :after AND (kind = 'poison' OR delivery_state = 'given_up') ORDER BY number LIMIT :limit

-- name: dead_letter_by_number() :number int
SELECT number, kind, lane, dedupe, body, attempts, last_error, changed_at_us FROM deliveries
WHERE number = :number AND (kind = 'poison' OR delivery_state = 'given_up') :for_update

-- name: deliver_again(number int, now_us int)
-- Queued again as if it were new.
UPDATE deliveries AS d SET delivery_state = 'waiting', attempts = 0, created_at_us = r.now_us, next_at_us = r.now_us,
  leased_until_us = 0, changed_at_us = r.now_us
FROM :rows WHERE d.number = r.number

-- name: drop_deliveries(number int)
DELETE FROM deliveries WHERE number IN (SELECT r.number FROM :rows)

-- name: forget_inbox(source text, message_id text)
DELETE FROM inbox WHERE (source, message_id) IN (SELECT r.source, r.message_id FROM :rows)

-- name: publish_again(number int, fact text, body text, event_id text, booking_id text, at_us int)
-- Under its old number, so that consumers that have handled it skip it. Also after it was purged here.
INSERT INTO outbox (number, fact, body, event_id, booking_id, at_us)
SELECT r.number, r.fact, r.body, r.event_id, r.booking_id, r.at_us FROM :rows WHERE true
ON CONFLICT (number) DO UPDATE SET published_at_us = NULL, leased_until_us = 0
