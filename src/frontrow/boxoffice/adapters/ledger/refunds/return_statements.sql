-- name: add_returns(id text, booking_id text, event_id text, fan text, fence int, seat_index int, currency text, now_us int, price_minor int)
-- Records the intent; nothing is freed yet. The price is what was paid for the seat. Only seats that the booking has.
INSERT INTO returns (id, booking_id, event_id, fan, fence, seat_index, price_minor, currency, return_state,
  created_at_us, changed_at_us)
SELECT r.id, r.booking_id, r.event_id, r.fan, r.fence, r.seat_index, r.price_minor, r.currency, 'giving', r.now_us,
  r.now_us
FROM :rows LEFT JOIN booking_seats AS s
  ON s.booking_id = r.booking_id AND s.seat_index = r.seat_index{ AND s.event_id = r.event_id}
WHERE coalesce(s.active, 0) = 1
ON CONFLICT DO NOTHING

-- name: returns_of_booking() :sold_as text
SELECT id, booking_id, event_id, fan, fence, seat_index, price_minor, currency, return_state, resold_booking_id
FROM returns WHERE booking_id = :sold_as ORDER BY seat_index

-- name: returns_in_state() :return_state text :limit int
SELECT id, booking_id, event_id, fan, fence, seat_index, price_minor, currency, return_state, resold_booking_id
FROM returns WHERE return_state = :return_state AND return_state IN ('giving', 'listed', 'resold')
ORDER BY changed_at_us LIMIT :limit

-- name: resold_returns() :limit int
-- Listed seats that another booking has now, bought or moved there; or that a later booking had which has ended since:
-- confirmed after the return, with a minute of tolerance between two servers' clocks. (A booking that is moved to such
-- a seat uses `listed_on`.)
SELECT t.id, t.booking_id, t.event_id, t.fan, t.fence, t.seat_index, t.price_minor, t.currency, t.return_state, b.id,
  b.fence
FROM returns AS t CROSS JOIN booking_seats AS s CROSS JOIN bookings AS b
WHERE t.return_state = 'listed' AND s.event_id = t.event_id AND s.seat_index = t.seat_index AND s.active = 1
  AND b.id = s.booking_id{ AND b.event_id = s.event_id} AND b.id <> t.booking_id AND b.confirmed_at_us IS NOT NULL
UNION ALL
SELECT t.id, t.booking_id, t.event_id, t.fan, t.fence, t.seat_index, t.price_minor, t.currency, t.return_state, b.id,
  b.fence
FROM returns AS t CROSS JOIN booking_seats AS s CROSS JOIN bookings AS b
WHERE t.return_state = 'listed' AND s.event_id = t.event_id AND s.seat_index = t.seat_index AND s.active = 0
  AND b.id = s.booking_id{ AND b.event_id = s.event_id} AND b.fence > t.fence
  AND b.confirmed_at_us > t.changed_at_us - 60000000
LIMIT :limit

-- name: listed_on(event_id text, seat_index int)
-- Returns of these seats that are listed for resale.
SELECT t.id, t.booking_id, t.event_id, t.fan, t.fence, t.seat_index, t.price_minor, t.currency, t.return_state,
  t.resold_booking_id
FROM :rows CROSS JOIN returns AS t
WHERE t.event_id = r.event_id AND t.seat_index = r.seat_index AND t.return_state = 'listed'
  AND t.return_state IN ('giving', 'listed', 'resold') ORDER BY t.id

-- name: returns_of_event() :event_id text :after text :limit int
-- Unsettled returns, page by page.
SELECT id, booking_id, event_id, fan, fence, seat_index, price_minor, currency, return_state, resold_booking_id
FROM returns WHERE event_id = :event_id AND id > :after AND return_state IN ('giving', 'listed', 'resold')
ORDER BY id LIMIT :limit

-- name: turn_returns(id text, from_state text, to_state text, resold_booking_id text, now_us int)
UPDATE returns AS t SET return_state = r.to_state, changed_at_us = r.now_us,
  resold_booking_id = CASE WHEN r.resold_booking_id = '' THEN t.resold_booking_id ELSE r.resold_booking_id END
FROM :rows WHERE t.id = r.id AND t.return_state = r.from_state
RETURNING t.id

-- name: set_return_prices(id text, price_minor int)
-- What is owed for seats that are being given back, once it is known which other seats go with them.
UPDATE returns AS t SET price_minor = r.price_minor FROM :rows WHERE t.id = r.id AND t.return_state = 'giving'

-- name: shrink_returned(booking_id text, fence int, seat_count int, seats text, was_seats text, price_minor int, now_us int)
-- The booking keeps its other seats and their price. The price of the returned seats is owed by their returns.
UPDATE bookings AS b SET seat_count = r.seat_count, seats = r.seats, amount_minor = b.amount_minor - r.price_minor,
  changed_at_us = r.now_us
FROM :rows :event_of r.booking_id
WHERE b.id = r.booking_id{ AND b.event_id = d.event_id} AND b.fence = r.fence
  AND coalesce(b.state, '') = 'confirmed' AND b.seats = r.was_seats
RETURNING b.id
