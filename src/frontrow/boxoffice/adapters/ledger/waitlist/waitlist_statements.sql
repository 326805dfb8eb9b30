-- name: put_waitlist_rules(event_id text, wait_order text, seed text, seed_hash text, now_us int)
-- Set once: people who wait must be able to rely on them.
INSERT INTO waitlist_rules (event_id, wait_order, seed, seed_hash, created_at_us)
SELECT r.event_id, r.wait_order, r.seed, r.seed_hash, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: waitlist_rules_of() :event_id text
SELECT event_id, wait_order, seed, seed_hash FROM waitlist_rules WHERE event_id = :event_id

-- name: join_waitlist(id text, event_id text, fan text, seat_count int, sections text, split_ok int, rank int, now_us int)
-- A fan who is already in line is left out of the result. A cancelled event has no line.
INSERT INTO waitlist AS w (id, event_id, fan, seat_count, sections, split_ok, rank, entry_state, created_at_us,
  changed_at_us)
SELECT r.id, r.event_id, r.fan, r.seat_count, r.sections, r.split_ok, r.rank, 'waiting', r.now_us, r.now_us
FROM :rows WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.id = r.event_id AND e.event_state = 'cancelled')
ON CONFLICT DO NOTHING
RETURNING w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state,
  w.offers_made, w.lapses, w.created_at_us

-- name: entries_by_id(id text)
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us FROM :rows CROSS JOIN waitlist AS w WHERE w.id = r.id

-- name: entry_of_fan() :event_id text :fan text
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us FROM waitlist AS w
WHERE w.event_id = :event_id AND w.fan = :fan AND w.entry_state IN ('waiting', 'offered')

-- name: entries_in_line(fan text)
-- A fan's own entries by the index of fans; `coalesce` keeps planners from walking the line of all who wait instead.
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us
FROM :rows CROSS JOIN waitlist AS w WHERE w.fan = r.fan AND coalesce(w.entry_state, '') IN ('waiting', 'offered')
  ORDER BY w.number

-- name: waiting_page(section text, free int) :event_id text :rank int :number int :limit int
-- The line from a place on: entries whose party fits one of these sections, or several if it may be split.
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us FROM waitlist AS w
WHERE w.event_id = :event_id AND w.entry_state = 'waiting'
  AND (w.rank, w.number) > (:rank, :number)
  AND EXISTS (SELECT 1 FROM :rows WHERE (w.sections = '' OR w.sections LIKE '%|' || r.section || '|%')
    AND (w.split_ok = 1 OR w.seat_count <= r.free))
ORDER BY w.rank, w.number LIMIT :limit

-- name: line_of_event() :event_id text :limit int
-- Entries that wait or have an offer, by the index that keeps one entry per fan.
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us FROM waitlist AS w
WHERE w.event_id = :event_id AND w.entry_state IN ('waiting', 'offered') ORDER BY w.fan LIMIT :limit

-- name: entries_ahead() :event_id text :rank int :number int
SELECT count(*) FROM waitlist
WHERE event_id = :event_id AND entry_state = 'waiting' AND (rank, number) < (:rank, :number)

-- name: read_waitlist_summary() :event_id text :now_us int
-- The number of taken seats, and whether anybody waits: a cheap check before the expensive one.
SELECT
  (SELECT coalesce(sum(seat_count), 0) FROM bookings WHERE event_id = :event_id
    AND state IN ('held', 'paying', 'confirmed') AND (state = 'confirmed' OR hold_expires_at_us > :now_us)),
  (SELECT count(*) FROM (SELECT 1 FROM waitlist WHERE event_id = :event_id AND entry_state = 'waiting' LIMIT 1) AS one)

-- name: events_to_serve(event_id text)
-- The events with their status, and whether anybody waits for seats.
SELECT e.id, e.event_state,
  (SELECT count(*) FROM (
    SELECT 1 FROM waitlist AS w WHERE w.event_id = e.id AND w.entry_state = 'waiting' LIMIT 1
  ) AS one)
FROM :rows CROSS JOIN events AS e WHERE e.id = r.event_id

-- name: last_bookings(seat_index int) :event_id text
-- Who had these seats, freed ones and dead holds alike. CROSS JOIN: SQLite then begins with the rows, each by an index.
SELECT s.seat_index, b.fence, b.fan FROM :rows CROSS JOIN booking_seats AS s CROSS JOIN bookings AS b
WHERE s.event_id = :event_id AND s.seat_index = r.seat_index AND s.active = 0
  AND b.id = s.booking_id{ AND b.event_id = s.event_id}
UNION ALL
SELECT s.seat_index, b.fence, b.fan FROM :rows CROSS JOIN booking_seats AS s CROSS JOIN bookings AS b
WHERE s.event_id = :event_id AND s.seat_index = r.seat_index AND s.active = 1
  AND b.id = s.booking_id{ AND b.event_id = s.event_id}

-- name: turn_entries(id text, from_state text, to_state text, offered int, lapsed int, now_us int)
UPDATE waitlist AS w SET entry_state = r.to_state, offers_made = w.offers_made + r.offered,
  lapses = w.lapses + r.lapsed, changed_at_us = r.now_us
FROM :rows WHERE w.id = r.id AND w.entry_state = r.from_state
RETURNING w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state,
  w.offers_made, w.lapses, w.created_at_us

-- name: add_offers(id text, entry_id text, event_id text, fan text, booking_id text, expires_at_us int, now_us int)
INSERT INTO offers (id, entry_id, event_id, fan, booking_id, offer_state, expires_at_us, created_at_us, changed_at_us)
SELECT r.id, r.entry_id, r.event_id, r.fan, r.booking_id, 'open', r.expires_at_us, r.now_us, r.now_us FROM :rows

-- name: offers_by_id(id text)
SELECT o.id, o.entry_id, o.event_id, o.fan, o.booking_id, o.offer_state, o.expires_at_us, b.fence, b.seats, b.state,
  b.hold_expires_at_us
FROM :rows CROSS JOIN offers AS o JOIN bookings AS b ON b.id = o.booking_id{ AND b.event_id = o.event_id}
WHERE o.id = r.id

-- name: offers_of_fan() :event_id text :fan text :limit int
SELECT o.id, o.entry_id, o.event_id, o.fan, o.booking_id, o.offer_state, o.expires_at_us, b.fence, b.seats, b.state,
  b.hold_expires_at_us
FROM offers AS o JOIN bookings AS b ON b.id = o.booking_id{ AND b.event_id = o.event_id}
WHERE o.event_id = :event_id AND o.fan = :fan ORDER BY o.created_at_us DESC LIMIT :limit

-- name: open_offer_of_entry() :entry_id text
SELECT id FROM offers WHERE entry_id = :entry_id AND offer_state = 'open'

-- name: open_offers_of_entries(entry_id text)
SELECT o.id, o.entry_id, o.event_id, o.fan, o.booking_id, o.offer_state, o.expires_at_us, b.fence, b.seats, b.state,
  b.hold_expires_at_us
FROM :rows CROSS JOIN offers AS o JOIN bookings AS b ON b.id = o.booking_id{ AND b.event_id = o.event_id}
WHERE o.id = (SELECT n.id FROM offers AS n WHERE n.entry_id = r.entry_id AND n.offer_state = 'open')

-- name: due_offers() :now_us int :limit int
-- Open offers that are past their time, or whose booking was paid or ended.
SELECT o.id, o.entry_id, o.event_id, o.fan, o.booking_id, o.offer_state, o.expires_at_us, b.fence, b.seats, b.state,
  b.hold_expires_at_us
FROM offers AS o JOIN bookings AS b ON b.id = o.booking_id{ AND b.event_id = o.event_id}
WHERE o.offer_state = 'open' AND (o.expires_at_us <= :now_us OR b.state <> 'held')
ORDER BY o.expires_at_us LIMIT :limit

-- name: turn_offers(id text, to_state text, alive int, now_us int)
-- The one conditional update of every answer to an offer; `alive`: only before its end. (`coalesce`: by its id, not by
-- the index over open offers.)
UPDATE offers AS o SET offer_state = r.to_state, changed_at_us = r.now_us
FROM :rows WHERE o.id = r.id AND coalesce(o.offer_state, '') = 'open' AND (r.alive = 0 OR o.expires_at_us > r.now_us)
RETURNING o.id

-- name: swap_event(id text, was_document text, document text, event_state text, now_us int)
-- Changes an event only if nobody else has changed it in the meantime.
UPDATE events AS e SET document = r.document, event_state = r.event_state, changed_at_us = r.now_us
FROM :rows WHERE e.id = r.id AND e.document = r.was_document
RETURNING e.id
