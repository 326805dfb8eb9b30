-- name: put_listings(event_id text, plan_hash text, event_state text, starts_at_us int, starts_local_us int, sale_starts_at_us int, sale_ends_at_us int, over_at_us int, currency text, min_price_minor int, max_price_minor int, withheld int)
-- What lists and searches ask of an event. Its free seats are counted later; of a new one all are free but the
-- withheld.
INSERT INTO event_listings (event_id, event_state, starts_at_us, starts_local_us, sale_starts_at_us, sale_ends_at_us,
  over_at_us, currency, min_price_minor, max_price_minor, free_seats, counted_at_us)
SELECT r.event_id, r.event_state, r.starts_at_us, r.starts_local_us, r.sale_starts_at_us, r.sale_ends_at_us,
  r.over_at_us, r.currency, r.min_price_minor, r.max_price_minor,
  coalesce((SELECT p.seat_count FROM plans AS p WHERE p.hash = r.plan_hash), 0) - r.withheld, 0
FROM :rows WHERE true
ON CONFLICT (event_id) DO UPDATE SET event_state = excluded.event_state, starts_at_us = excluded.starts_at_us,
  starts_local_us = excluded.starts_local_us, sale_starts_at_us = excluded.sale_starts_at_us,
  sale_ends_at_us = excluded.sale_ends_at_us, over_at_us = excluded.over_at_us, currency = excluded.currency,
  min_price_minor = excluded.min_price_minor, max_price_minor = excluded.max_price_minor

-- name: drop_event_words(event_id text)
DELETE FROM event_words WHERE event_id IN (SELECT r.event_id FROM :rows)

-- name: put_event_words(word text, event_id text, source text)
INSERT INTO event_words (word, event_id, source)
SELECT r.word, r.event_id, r.source FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: locked_venue() :id text
-- Locks a venue until the transaction ends: nobody renames it while its words are copied to an event.
SELECT v.id, v.name, v.plan_hash, v.city, v.country, v.time_zone FROM venues AS v WHERE v.id = :id :for_update

-- name: starts_at_venue() :venue_id text
SELECT e.id, e.starts_at_us FROM events AS e WHERE e.venue_id = :venue_id ORDER BY e.id

-- name: put_local_starts(event_id text, starts_local_us int)
UPDATE event_listings AS l SET starts_local_us = r.starts_local_us FROM :rows WHERE l.event_id = r.event_id

-- name: drop_venue_words() :venue_id text
DELETE FROM event_words WHERE source = 'venue' AND event_id IN (SELECT e.id FROM events AS e
  WHERE e.venue_id = :venue_id)

-- name: put_venue_words(word text) :venue_id text
-- The new words of a venue, for each of its events.
INSERT INTO event_words (word, event_id, source)
SELECT r.word, e.id, 'venue' FROM :rows CROSS JOIN events AS e WHERE e.venue_id = :venue_id
ON CONFLICT DO NOTHING

-- name: count_words(low text, high text) :most int
-- The number of words per range, counted up to a bound. A search starts with the rarest.
SELECT r.low, (SELECT count(*) FROM (SELECT 1 FROM event_words AS w WHERE w.word >= r.low AND w.word < r.high
  LIMIT :most) AS counted)
FROM :rows

-- name: count_cheap() :shelf int :max_price int :most int
SELECT count(*) FROM (SELECT 1 FROM event_listings AS e WHERE e.shelf = :shelf
  AND e.min_price_minor >= 0 AND e.min_price_minor <= :max_price LIMIT :most) AS counted

-- name: find_by_word() :shelf int :event_state text :from_us int :before_us int :local_from_us int :local_before_us int :sale_from_us int :sale_before_us int :sale_ends_after_us int :after_us int :after_id text :currency text :min_price int :max_price int :free int :low1 text :high1 text :low2 text :high2 text :low3 text :high3 text :low4 text :high4 text :low5 text :high5 text :low6 text :high6 text :low7 text :high7 text :low8 text :high8 text :first_low text :first_high text :limit int :skip int
-- Starts with the rarest word: its events that have the other words too, then the other conditions. (The outer
-- join, `coalesce` and `+ 0` make every planner look up the events by id, one by one.)
SELECT e.event_id
FROM (SELECT e.event_id FROM (SELECT DISTINCT w.event_id FROM event_words AS w
  WHERE w.word >= :first_low AND w.word < :first_high) AS e WHERE :word_filters) AS m
LEFT JOIN event_listings AS e ON e.event_id = m.event_id
  AND e.shelf + 0 = :shelf AND e.starts_at_us + 0 >= :from_us AND e.starts_at_us + 0 < :before_us
  AND :event_filters
WHERE coalesce(e.event_id, '') <> ''
ORDER BY e.starts_at_us, e.event_id LIMIT :limit OFFSET :skip

-- name: find_by_price() :shelf int :event_state text :from_us int :before_us int :local_from_us int :local_before_us int :sale_from_us int :sale_before_us int :sale_ends_after_us int :after_us int :after_id text :currency text :min_price int :max_price int :free int :low1 text :high1 text :low2 text :high2 text :low3 text :high3 text :low4 text :high4 text :low5 text :high5 text :low6 text :high6 text :low7 text :high7 text :low8 text :high8 text :limit int :skip int
-- Starts with the cheapest events, when few are cheap enough.
SELECT e.event_id
FROM (SELECT p.event_id FROM event_listings AS p WHERE p.shelf = :shelf AND p.min_price_minor >= 0
  AND p.min_price_minor <= :max_price) AS m
LEFT JOIN event_listings AS e ON e.event_id = m.event_id
  AND e.shelf + 0 = :shelf AND e.starts_at_us + 0 >= :from_us AND e.starts_at_us + 0 < :before_us
  AND :event_filters AND :word_filters
WHERE coalesce(e.event_id, '') <> ''
ORDER BY e.starts_at_us, e.event_id LIMIT :limit OFFSET :skip

-- name: find_by_start() :shelf int :event_state text :from_us int :before_us int :local_from_us int :local_before_us int :sale_from_us int :sale_before_us int :sale_ends_after_us int :after_us int :after_id text :currency text :min_price int :max_price int :free int :low1 text :high1 text :low2 text :high2 text :low3 text :high3 text :low4 text :high4 text :low5 text :high5 text :low6 text :high6 text :low7 text :high7 text :low8 text :high8 text :limit int :skip int
-- When many events match: ordered by start, until the page is full.
SELECT e.event_id FROM event_listings AS e
WHERE e.shelf = :shelf AND e.starts_at_us >= :from_us AND e.starts_at_us < :before_us
  AND :event_filters AND :word_filters
ORDER BY e.starts_at_us, e.event_id LIMIT :limit OFFSET :skip

-- name: listed_currencies() :limit int
-- The currencies of events on sale: one index step per currency.
WITH RECURSIVE step(currency) AS (
  SELECT min(e.currency) FROM event_listings AS e WHERE e.shelf = 1
  UNION ALL
  SELECT (SELECT min(n.currency) FROM event_listings AS n WHERE n.shelf = 1 AND n.currency > step.currency)
  FROM step WHERE step.currency IS NOT NULL
)
SELECT currency FROM step WHERE currency IS NOT NULL LIMIT :limit

-- name: seats_left_of(event_id text)
SELECT e.event_id, e.free_seats FROM :rows CROSS JOIN event_listings AS e WHERE e.event_id = r.event_id

-- name: catalogue_version()
SELECT version FROM catalogue_version

-- name: live_events() :after_us int :after_id text :limit int
-- Events on sale or sold out, ordered by start.
SELECT d.document FROM (SELECT e.event_id, e.starts_at_us FROM event_listings AS e
  WHERE e.shelf = 1 AND e.starts_at_us >= :after_us AND (e.starts_at_us > :after_us OR e.event_id > :after_id)
  ORDER BY e.starts_at_us, e.event_id LIMIT :limit) AS m
LEFT JOIN events AS d ON d.id = m.event_id
ORDER BY m.starts_at_us, m.event_id

-- name: public_events() :after_us int :after_id text :limit int
-- For sitemaps: events on sale or sold out, with the time of their last change.
SELECT m.starts_at_us, m.event_id, d.changed_at_us FROM (SELECT e.event_id, e.starts_at_us FROM event_listings AS e
  WHERE e.shelf = 1 AND e.starts_at_us >= :after_us AND (e.starts_at_us > :after_us OR e.event_id > :after_id)
  ORDER BY e.starts_at_us, e.event_id LIMIT :limit) AS m
JOIN events AS d ON d.id = m.event_id
ORDER BY m.starts_at_us, m.event_id

-- name: changed_events() :after int :after_id text :limit int
-- Changes after that number, oldest first. The document is returned only for events on sale or sold out.
SELECT e.change_number, e.id, CASE WHEN e.event_state IN ('on_sale', 'sold_out') THEN e.document ELSE '' END
FROM events AS e
WHERE e.change_number >= :after AND (e.change_number > :after OR e.id > :after_id)
ORDER BY e.change_number, e.id LIMIT :limit

-- name: count_active_seats() :event_id text :plan_hash text
-- The number of seats in the plan, and of seats of the event that are sold or held.
SELECT (SELECT p.seat_count FROM plans AS p WHERE p.hash = :plan_hash),
  (SELECT count(*) FROM booking_seats AS s WHERE s.event_id = :event_id AND s.active = 1)

-- name: put_free_seats(event_id text, free_seats int, now_us int)
UPDATE event_listings AS l SET free_seats = r.free_seats, counted_at_us = r.now_us
FROM :rows WHERE l.event_id = r.event_id

-- name: locked_event() :id text
SELECT e.document FROM events AS e WHERE e.id = :id :for_update

-- name: any_hold() :event_id text
SELECT 1 FROM bookings AS b WHERE b.event_id = :event_id AND b.state IN ('held', 'paying') LIMIT 1

-- name: any_sold() :event_id text
SELECT 1 FROM booking_seats AS s WHERE s.event_id = :event_id AND s.active = 1 LIMIT 1

-- name: any_waiting() :event_id text
SELECT 1 FROM waitlist AS w WHERE w.event_id = :event_id AND w.entry_state = 'waiting' LIMIT 1

-- name: ended_events() :now_us int :limit int
-- Events still on sale or sold out although they are over, oldest first.
SELECT e.event_id FROM event_listings AS e WHERE e.shelf = 1 AND e.over_at_us <= :now_us
ORDER BY e.over_at_us LIMIT :limit

-- name: stale_counts() :before_us int :limit int
-- Events on sale or sold out that were not counted since then.
SELECT e.event_id FROM event_listings AS e WHERE e.shelf = 1 AND e.counted_at_us < :before_us
ORDER BY e.counted_at_us LIMIT :limit
