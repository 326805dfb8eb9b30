-- name: begin_requests(name text, asked text, now_us int, lease_until_us int)
-- Claims the key. A claim that ended without a response is taken over by the same request.
INSERT INTO requests (name, asked, status, kind, headers, body, created_at_us, lease_until_us)
SELECT r.name, r.asked, 0, '', '{}', '', r.now_us, r.lease_until_us FROM :rows WHERE true
ON CONFLICT (name) DO UPDATE SET lease_until_us = excluded.lease_until_us, created_at_us = excluded.created_at_us
WHERE requests.status = 0 AND requests.asked = excluded.asked AND requests.lease_until_us <= excluded.created_at_us
RETURNING name

-- name: request_by_name() :name text
SELECT asked, status, kind, headers, body FROM requests WHERE name = :name

-- name: finish_requests(name text, status int, kind text, headers text, body text)
UPDATE requests SET status = r.status, kind = r.kind, headers = r.headers, body = r.body
FROM :rows WHERE requests.name = r.name

-- name: forget_requests(name text)
DELETE FROM requests WHERE status = 0 AND name IN (SELECT r.name FROM :rows)

-- name: purge_requests() :before_us int :limit int
DELETE FROM requests WHERE name IN
  (SELECT name FROM requests WHERE created_at_us < :before_us ORDER BY created_at_us LIMIT :limit)
