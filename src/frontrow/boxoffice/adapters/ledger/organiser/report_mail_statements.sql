-- name: put_report_mails(staff_id text, event_id text, frequency text, locale text, next_at_us int, now_us int)
INSERT INTO report_mails (staff_id, event_id, frequency, locale, next_at_us, created_at_us)
SELECT r.staff_id, r.event_id, r.frequency, r.locale, r.next_at_us, r.now_us FROM :rows WHERE true
ON CONFLICT (staff_id, event_id) DO UPDATE SET frequency = excluded.frequency, locale = excluded.locale,
  next_at_us = excluded.next_at_us

-- name: drop_report_mails(staff_id text, event_id text)
DELETE FROM report_mails WHERE (staff_id, event_id) IN (SELECT r.staff_id, r.event_id FROM :rows)

-- name: report_mail_of() :staff_id text :event_id text
SELECT staff_id, event_id, frequency, locale, next_at_us FROM report_mails
WHERE staff_id = :staff_id AND event_id = :event_id

-- name: due_report_mails() :now_us int :limit int
SELECT staff_id, event_id, frequency, locale, next_at_us FROM report_mails
WHERE next_at_us <= :now_us ORDER BY next_at_us, staff_id, event_id LIMIT :limit

-- name: move_report_mails(staff_id text, event_id text, was_us int, next_at_us int)
-- Only one worker moves it on, and only that one sends the mail.
UPDATE report_mails AS m SET next_at_us = r.next_at_us FROM :rows
WHERE m.staff_id = r.staff_id AND m.event_id = r.event_id AND m.next_at_us = r.was_us RETURNING m.staff_id

-- name: put_feed_addresses(staff_id text, secret_hash text, now_us int)
INSERT INTO feed_addresses (staff_id, secret_hash, created_at_us)
SELECT r.staff_id, r.secret_hash, r.now_us FROM :rows WHERE true
ON CONFLICT (staff_id) DO UPDATE SET secret_hash = excluded.secret_hash, created_at_us = excluded.created_at_us

-- name: drop_feed_addresses(staff_id text)
DELETE FROM feed_addresses WHERE staff_id IN (SELECT r.staff_id FROM :rows)

-- name: feed_address_of() :staff_id text
SELECT created_at_us FROM feed_addresses WHERE staff_id = :staff_id

-- name: member_of_feed() :secret_hash text
SELECT s.id, s.organiser_id, s.email, s.name, s.role, s.password_hash, s.totp_sealed, s.totp_step, s.created_at_us
FROM feed_addresses AS f JOIN staff AS s ON s.id = f.staff_id WHERE f.secret_hash = :secret_hash
