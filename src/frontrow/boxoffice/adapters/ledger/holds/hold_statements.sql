-- name: seats_in_the_way(event_id text, seat_index int) row by row
-- Who has these seats now, including dead holds. Outer joins and `coalesce` make every planner start with the rows.
SELECT s.event_id, s.seat_index, b.id, b.state, b.hold_expires_at_us, b.fence
FROM :rows
LEFT JOIN booking_seats AS s ON s.event_id = r.event_id AND s.seat_index = r.seat_index AND s.active = 1
LEFT JOIN bookings AS b ON b.id = s.booking_id{ AND b.event_id = s.event_id}
WHERE coalesce(s.active, 0) = 1

-- name: active_counts(event_id text, fan text, now_us int) row by row
-- How many seats each fan who has any has in each event: sold ones and live holds. The order and the two bounds in
-- place of `=` only choose the index: while the tables have no statistics PostgreSQL holds all indexes that begin with
-- the event for equally good, and one of them would read the whole event for every fan.
SELECT c.event_id, c.fan, c.active FROM (SELECT r.event_id, r.fan, (SELECT coalesce(sum(a.seat_count), 0) FROM (
  SELECT b.seat_count FROM bookings AS b
  WHERE b.event_id = r.event_id AND b.fan >= r.fan AND b.fan <= r.fan AND b.state IN ('held', 'paying', 'confirmed')
    AND (b.state = 'confirmed' OR b.hold_expires_at_us > r.now_us)
  ORDER BY b.fan) AS a) AS active
FROM :rows) AS c WHERE c.active > 0

-- name: visits_with_tickets(booking_id text, event_id text, fan text, visit_id text) row by row
-- The requests whose visit has bought tickets with another booking. Bounds and order choose the index, as above.
SELECT c.booking_id FROM (SELECT r.booking_id, (SELECT b.id FROM bookings AS b
  WHERE b.event_id = r.event_id AND b.fan >= r.fan AND b.fan <= r.fan AND b.state IN ('confirmed', 'refunded')
    AND coalesce(b.visit_id, b.session) = r.visit_id AND b.id <> r.booking_id
  ORDER BY b.fan LIMIT 1) AS bought
FROM :rows) AS c WHERE c.bought IS NOT NULL

-- name: take_free_seats(event_id text, seat_index int, booking_id text, price_minor int) row by row
-- The optimistic insert, when all seats seem free: half the cost of `take_seats`, and all or nothing for the whole
-- batch. The rows come in seat order, so two writers cannot deadlock.
INSERT INTO booking_seats (event_id, seat_index, booking_id, price_minor, active)
SELECT r.event_id, r.seat_index, r.booking_id, r.price_minor, 1 FROM :rows

-- name: take_seats(event_id text, seat_index int, booking_id text, price_minor int)
-- The unique index decides: a seat that somebody else has is left out of the result.
INSERT INTO booking_seats (event_id, seat_index, booking_id, price_minor, active)
SELECT r.event_id, r.seat_index, r.booking_id, r.price_minor, 1 FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING booking_id, seat_index

-- name: drop_seats(event_id text, booking_id text, seat_index int)
-- Removes the seats of a booking that did not get all of its seats.
DELETE FROM booking_seats
WHERE ({event_id, }booking_id, seat_index) IN (SELECT {r.event_id, }r.booking_id, r.seat_index FROM :rows)

-- name: add_new_bookings(id text, event_id text, fan text, seat_count int, seats text, amount_minor int, currency text, origin text, made_by text, now_us int, expires_at_us int, price_lines text) row by row
-- The hopeful way. After the seats are taken, never before: so of two holds of one seat the later one has the greater
-- fence. `made_by` is the visit, the offer or the member of staff. Servers before schema 41 read it from `session`.
INSERT INTO bookings (id, event_id, fan, state, seat_count, seats, amount_minor, currency, origin, visit_id, sold_by,
  session, created_at_us, changed_at_us, hold_expires_at_us, price_lines)
SELECT r.id, r.event_id, r.fan, 'held', r.seat_count, r.seats, r.amount_minor, r.currency, r.origin,
  CASE r.origin WHEN 'shop' THEN r.made_by ELSE '' END, CASE r.origin WHEN 'box_office' THEN r.made_by ELSE '' END,
  r.made_by, r.now_us, r.now_us, r.expires_at_us, r.price_lines
FROM :rows WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.id = r.event_id AND e.event_state = 'cancelled')
RETURNING id, fence

-- name: add_bookings(id text, event_id text, fan text, seat_count int, seats text, amount_minor int, currency text, origin text, made_by text, now_us int, expires_at_us int, price_lines text)
-- The same, leaving out existing bookings. In both, a cancelled event takes no hold.
INSERT INTO bookings (id, event_id, fan, state, seat_count, seats, amount_minor, currency, origin, visit_id, sold_by,
  session, created_at_us, changed_at_us, hold_expires_at_us, price_lines)
SELECT r.id, r.event_id, r.fan, 'held', r.seat_count, r.seats, r.amount_minor, r.currency, r.origin,
  CASE r.origin WHEN 'shop' THEN r.made_by ELSE '' END, CASE r.origin WHEN 'box_office' THEN r.made_by ELSE '' END,
  r.made_by, r.now_us, r.now_us, r.expires_at_us, r.price_lines
FROM :rows WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.id = r.event_id AND e.event_state = 'cancelled')
{  AND NOT EXISTS (SELECT 1 FROM booking_events AS d WHERE d.booking_id = r.id AND d.event_id <> r.event_id)
}ON CONFLICT DO NOTHING
RETURNING id, fence

-- name: end_holds(booking_id text, was text, now_us int)
-- Ends holds that are past their end, and no others. (A literal list of states could cause a full index scan.)
UPDATE bookings AS b SET state = 'expired', changed_at_us = r.now_us
FROM :rows :event_of r.booking_id
WHERE b.id = r.booking_id{ AND b.event_id = d.event_id} AND b.state = r.was AND b.hold_expires_at_us <= r.now_us
RETURNING b.id, b.event_id, b.fan, b.fence, b.seats, b.hold_expires_at_us

-- name: due_holds() :now_us int :limit int
-- Dead holds, oldest first. Those that another worker is ending are skipped.
SELECT id, state FROM bookings
WHERE state IN ('held', 'paying') AND hold_expires_at_us <= :now_us
ORDER BY hold_expires_at_us LIMIT :limit :skip_locked

-- name: free_seats(booking_id text)
-- The seats of ended bookings can be taken again.
UPDATE booking_seats SET active = 0
WHERE ({event_id, }booking_id) IN (SELECT {d.event_id, }r.booking_id FROM :rows :event_of r.booking_id)

-- name: move_bookings(booking_id text, fence int, from_state text, to_state text, now_us int, expires_at_us int, needs_live int) row by row
-- The one conditional update of every move: state, fence and expiry are in its WHERE. A booking is confirmed only with
-- all of its seats under the unique index, so this layer holds even if the others fail. (`sum` instead of `active = 1`:
-- without statistics PostgreSQL would read the whole partial index, 3 ms per booking.) No booking of a cancelled event
-- is confirmed, whatever the calling server believes. (A scalar subquery instead of EXISTS: PostgreSQL would read every
-- cancelled event for each batch.)
UPDATE bookings AS b SET
  state = r.to_state,
  changed_at_us = r.now_us,
  hold_expires_at_us = CASE WHEN r.expires_at_us > b.hold_expires_at_us THEN r.expires_at_us
    WHEN r.to_state = 'held' AND b.state <> 'held' AND r.expires_at_us > 0 THEN r.expires_at_us
    ELSE b.hold_expires_at_us END,
  confirmed_at_us = CASE WHEN r.to_state = 'confirmed' AND b.state <> 'confirmed' THEN r.now_us
    ELSE b.confirmed_at_us END,
  payment_begun_at_us = CASE WHEN r.to_state = 'paying' AND b.state = 'held' THEN r.now_us
    ELSE b.payment_begun_at_us END
FROM :rows :event_of r.booking_id
WHERE b.id = r.booking_id{ AND b.event_id = d.event_id} AND b.fence = r.fence AND b.state = r.from_state
  AND (r.needs_live = 0 OR b.hold_expires_at_us > r.now_us)
  AND (r.to_state <> 'confirmed'
    OR (b.seat_count = (SELECT coalesce(sum(s.active), 0) FROM booking_seats AS s
        WHERE s.booking_id = b.id{ AND s.event_id = b.event_id})
      AND coalesce((SELECT e.event_state FROM events AS e WHERE e.id = b.event_id), '') <> 'cancelled'))
RETURNING :booking

-- name: cancelled_events(id text)
SELECT e.id FROM :rows CROSS JOIN events AS e WHERE e.id = r.id AND coalesce(e.event_state, '') = 'cancelled'

-- name: bookings_by_id(id text) row by row
SELECT :booking FROM :rows :event_of r.id CROSS JOIN bookings AS b
WHERE b.id = r.id{ AND b.event_id = d.event_id}

-- name: bookings_of_fan() :event_id text :fan text :limit int
SELECT :booking FROM bookings AS b WHERE b.event_id = :event_id AND b.fan = :fan ORDER BY b.fence DESC LIMIT :limit

-- name: active_seats() :event_id text :now_us int
-- Every seat that is sold or live held, for rebuilding claims and maps.
SELECT s.seat_index, b.state, b.fan, b.id, b.hold_expires_at_us, b.fence
FROM booking_seats AS s JOIN bookings AS b ON b.id = s.booking_id{ AND b.event_id = s.event_id}
WHERE s.event_id = :event_id AND s.active = 1 AND (b.state = 'confirmed' OR b.hold_expires_at_us > :now_us)
ORDER BY s.seat_index
