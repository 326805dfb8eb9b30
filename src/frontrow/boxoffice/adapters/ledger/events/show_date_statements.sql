-- name: put_show_dates(event_id text, show_id text, starts_at_us int)
-- The dates of shows that run several times.
INSERT INTO show_dates (event_id, show_id, starts_at_us)
SELECT r.event_id, r.show_id, r.starts_at_us FROM :rows WHERE true
ON CONFLICT (event_id) DO UPDATE SET show_id = excluded.show_id, starts_at_us = excluded.starts_at_us

-- name: show_starts() :show_id text
SELECT starts_at_us FROM show_dates WHERE show_id = :show_id

-- name: dates_of_show() :show_id text :from_us int :limit int
-- The dates of a show, in order of their start.
SELECT d.document FROM (SELECT s.event_id, s.starts_at_us FROM show_dates AS s
  WHERE s.show_id = :show_id AND s.starts_at_us >= :from_us
  ORDER BY s.starts_at_us, s.event_id LIMIT :limit) AS m
JOIN events AS d ON d.id = m.event_id
ORDER BY m.starts_at_us, m.event_id
