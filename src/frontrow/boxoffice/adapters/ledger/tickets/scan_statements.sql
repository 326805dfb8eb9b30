-- name: add_scans(id text, event_id text, ticket_id text, gate text, at_us int, way text)
-- A scan that was recorded before is left out.
INSERT INTO scans (id, event_id, ticket_id, gate, at_us, way)
SELECT r.id, r.event_id, r.ticket_id, r.gate, r.at_us, r.way FROM :rows WHERE true ORDER BY r.id
ON CONFLICT DO NOTHING

-- name: stamp_scanned(ticket_id text, event_id text, at_us int)
-- The earliest admission, in whatever order the gates report.
UPDATE tickets AS t SET scanned_at_us = r.at_us
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id
  AND (t.scanned_at_us IS NULL OR t.scanned_at_us > r.at_us)

-- name: stamp_left(ticket_id text, event_id text)
-- Outside if the newest scan is an exit, in whatever order the gates report.
UPDATE tickets AS t SET left_at_us = (
  SELECT CASE WHEN s.way = 'out' THEN s.at_us END FROM scans AS s
  WHERE s.ticket_id = t.id AND s.event_id = t.event_id
  ORDER BY s.at_us DESC, s.id DESC LIMIT 1)
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id

-- name: scans_of(ticket_id text, event_id text)
SELECT s.id, s.event_id, s.ticket_id, s.gate, s.at_us, s.way FROM :rows
JOIN scans AS s ON s.ticket_id = r.ticket_id AND s.event_id = r.event_id
ORDER BY s.at_us, s.id

-- name: duplicate_scans() :event_id text :after int :limit int
-- Tickets of the event admitted while they were inside; paged by the number of the first such scan.
SELECT s.ticket_id, min(s.number) FROM (
  SELECT ticket_id, number, way, lag(way) OVER (PARTITION BY ticket_id ORDER BY at_us, id) AS before
  FROM scans WHERE event_id = :event_id
) AS s WHERE s.way = 'in' AND s.before = 'in'
GROUP BY s.ticket_id HAVING min(s.number) > :after ORDER BY 2 LIMIT :limit

-- name: conflicting_scans() :event_id text :limit int
-- The earliest admission of each revoked ticket that was admitted nevertheless.
SELECT s.id, s.event_id, s.ticket_id, s.gate, s.at_us, s.way FROM tickets AS t
JOIN scans AS s ON s.ticket_id = t.id{ AND s.event_id = t.event_id}
WHERE t.event_id = :event_id AND t.ticket_state = 'revoked' AND t.scanned_at_us IS NOT NULL
  AND s.at_us = t.scanned_at_us AND s.way = 'in'
ORDER BY s.at_us, s.id LIMIT :limit
