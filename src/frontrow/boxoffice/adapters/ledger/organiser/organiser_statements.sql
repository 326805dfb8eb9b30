-- name: add_changes(organiser_id text, event_id text, actor text, act text, detail text, at_us int)
-- Who changed what. The hash-chained audit log has the same text.
INSERT INTO changes (organiser_id, event_id, actor, act, detail, at_us)
SELECT r.organiser_id, r.event_id, r.actor, r.act, r.detail, r.at_us FROM :rows

-- name: changes_page() :organiser_id text :event_id text :before int :limit int :act text :actor text :about text
-- Newest first. An empty event, act, actor or detail pattern means any.
SELECT number, at_us, actor, act, event_id, detail FROM changes
WHERE organiser_id = :organiser_id AND number < :before AND (:event_id = '' OR event_id = :event_id)
  AND (:act = '' OR act = :act) AND (:actor = '' OR actor = :actor) AND (:about = '' OR detail LIKE :about)
ORDER BY number DESC LIMIT :limit

-- name: add_venues(id text, name text, plan_hash text, city text, country text, time_zone text, now_us int, organiser_id text)
INSERT INTO venues (id, name, plan_hash, city, country, time_zone, changed_at_us, organiser_id)
SELECT r.id, r.name, r.plan_hash, r.city, r.country, r.time_zone, r.now_us, r.organiser_id FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING id

-- name: swap_venues(id text, was_us int, name text, plan_hash text, city text, country text, time_zone text, now_us int)
-- Changes a venue only if nobody else has changed it in the meantime.
UPDATE venues AS v SET name = r.name, plan_hash = r.plan_hash, city = r.city, country = r.country,
  time_zone = r.time_zone, changed_at_us = CASE WHEN r.now_us > r.was_us THEN r.now_us ELSE r.was_us + 1 END
FROM :rows WHERE v.id = r.id AND v.changed_at_us = r.was_us
RETURNING v.changed_at_us

-- name: venues_of_organiser() :organiser_id text :after text :limit int
SELECT v.id, v.name, v.plan_hash, v.city, v.country, v.time_zone, v.changed_at_us, p.seat_count
FROM venues AS v JOIN plans AS p ON p.hash = v.plan_hash
WHERE v.organiser_id = :organiser_id AND v.id > :after ORDER BY v.id LIMIT :limit

-- name: own_venue() :id text :organiser_id text
SELECT v.id, v.name, v.plan_hash, v.city, v.country, v.time_zone, v.changed_at_us, p.seat_count
FROM venues AS v JOIN plans AS p ON p.hash = v.plan_hash
WHERE v.id = :id AND v.organiser_id = :organiser_id

-- name: add_events(id text, venue_id text, plan_hash text, name text, event_state text, currency text, starts_at_us int, sale_starts_at_us int, sale_ends_at_us int, max_per_person int, document text, now_us int, organiser_id text)
-- A new event. A known id is left out of the result.
INSERT INTO events (id, venue_id, plan_hash, name, event_state, currency, starts_at_us, sale_starts_at_us,
  sale_ends_at_us, max_per_person, document, created_at_us, changed_at_us, organiser_id)
SELECT r.id, r.venue_id, r.plan_hash, r.name, r.event_state, r.currency, r.starts_at_us, r.sale_starts_at_us,
  r.sale_ends_at_us, r.max_per_person, r.document, r.now_us, r.now_us, r.organiser_id
FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING id

-- name: swap_events(id text, was_document text, venue_id text, plan_hash text, name text, event_state text, currency text, starts_at_us int, sale_starts_at_us int, sale_ends_at_us int, max_per_person int, document text, now_us int)
-- Changes a whole event, only if nobody else has changed it in the meantime.
UPDATE events AS e SET venue_id = r.venue_id, plan_hash = r.plan_hash, name = r.name, event_state = r.event_state,
  currency = r.currency, starts_at_us = r.starts_at_us, sale_starts_at_us = r.sale_starts_at_us,
  sale_ends_at_us = r.sale_ends_at_us, max_per_person = r.max_per_person, document = r.document,
  changed_at_us = r.now_us
FROM :rows WHERE e.id = r.id AND e.document = r.was_document
RETURNING e.id

-- name: add_cancellations(event_id text, now_us int)
-- The job that refunds everyone. Safe to repeat.
INSERT INTO cancellations (event_id, job_state, refunded, released, stopped, failed, next_at_us, started_at_us,
  changed_at_us)
SELECT r.event_id, 'running', 0, 0, 0, 0, r.now_us, r.now_us, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING event_id

-- name: cancellation_of() :event_id text
SELECT event_id, job_state, refunded, released, stopped, failed, started_at_us, changed_at_us, returned
FROM cancellations WHERE event_id = :event_id

-- name: due_cancellations() :now_us int :limit int
SELECT event_id FROM cancellations WHERE job_state = 'running' AND next_at_us <= :now_us
ORDER BY next_at_us LIMIT :limit :skip_locked

-- name: claim_cancellations(event_id text, until_us int)
UPDATE cancellations AS c SET next_at_us = r.until_us FROM :rows WHERE c.event_id = r.event_id
RETURNING c.event_id, c.started_at_us

-- name: note_cancellations(event_id text, job_state text, refunded int, released int, stopped int, failed int, returned int, next_at_us int, now_us int)
-- Adds the counts of a page. `failed` is of the newest round only, because failures are retried.
UPDATE cancellations AS c SET job_state = r.job_state, refunded = c.refunded + r.refunded,
  released = c.released + r.released, stopped = c.stopped + r.stopped, failed = r.failed,
    returned = c.returned + r.returned,
  next_at_us = r.next_at_us, changed_at_us = r.now_us
FROM :rows WHERE c.event_id = r.event_id
RETURNING c.event_id

-- name: failed_refunds() :organiser_id text :event_id text :limit int
-- Failed refunds, oldest first. An empty event means any event of the organiser.
SELECT :refund, b.event_id FROM refunds AS f JOIN bookings AS b ON b.id = f.booking_id{ AND b.event_id = f.event_id}
  JOIN events AS e ON e.id = b.event_id
WHERE f.refund_state = 'failed' AND e.organiser_id = :organiser_id AND (:event_id = '' OR b.event_id = :event_id)
ORDER BY f.changed_at_us, f.id LIMIT :limit

-- name: bookings_page() :event_id text :state text :before int :limit int
-- An event's bookings, newest first. An empty state means any.
SELECT :booking FROM bookings AS b
WHERE b.event_id = :event_id AND b.fence < :before AND (:state = '' OR b.state = :state)
ORDER BY b.fence DESC LIMIT :limit

-- name: bookings_on_seat() :event_id text :seat_index int :before int :limit int
-- All bookings that have or had this seat.
SELECT :booking FROM booking_seats AS s CROSS JOIN bookings AS b
WHERE s.event_id = :event_id AND s.seat_index = :seat_index AND s.active = 1
  AND b.id = s.booking_id{ AND b.event_id = s.event_id} AND b.fence < :before
UNION ALL
SELECT :booking FROM booking_seats AS s CROSS JOIN bookings AS b
WHERE s.event_id = :event_id AND s.seat_index = :seat_index AND s.active = 0
  AND b.id = s.booking_id{ AND b.event_id = s.event_id} AND b.fence < :before
ORDER BY 5 DESC LIMIT :limit

-- name: bookings_of_fans(fan text) :event_id text :before int :limit int
-- Live bookings and purchases, each by its own index. Holds that ended without a purchase are left out.
SELECT :booking FROM :rows CROSS JOIN bookings AS b
WHERE b.event_id = :event_id AND b.fan = r.fan AND b.state IN ('held', 'paying', 'confirmed') AND b.fence < :before
UNION
SELECT :booking FROM :rows CROSS JOIN bookings AS b
WHERE b.event_id = :event_id AND b.fan = r.fan AND b.state IN ('confirmed', 'cancelled', 'refunded')
  AND b.fence < :before
ORDER BY 5 DESC LIMIT :limit

-- name: fans_by_email() :email text :limit int
-- Every fan id under which somebody with this address may have bought.
SELECT fan FROM contacts WHERE email = :email AND email <> ''
UNION SELECT id FROM fans WHERE email = :email AND email <> ''
LIMIT :limit

-- name: bookings_by_name() :event_id text :low text :high text :also text :and text :before int :limit int
-- Live ones and purchases of everybody with a tail of a name from low to high whose folded name is like the others.
SELECT :booking FROM (
  SELECT DISTINCT t.fan FROM name_tails AS t JOIN contacts AS c ON c.fan = t.fan
  WHERE t.event_id = :event_id AND t.tail >= :low AND t.tail < :high AND c.folded_name LIKE :also
    AND c.folded_name LIKE :and
) AS n CROSS JOIN bookings AS b
WHERE b.event_id = :event_id AND b.fan = n.fan AND b.state IN ('held', 'paying', 'confirmed') AND b.fence < :before
UNION
SELECT :booking FROM (
  SELECT DISTINCT t.fan FROM name_tails AS t JOIN contacts AS c ON c.fan = t.fan
  WHERE t.event_id = :event_id AND t.tail >= :low AND t.tail < :high AND c.folded_name LIKE :also
    AND c.folded_name LIKE :and
) AS n CROSS JOIN bookings AS b
WHERE b.event_id = :event_id AND b.fan = n.fan AND b.state IN ('confirmed', 'cancelled', 'refunded')
  AND b.fence < :before
ORDER BY 5 DESC LIMIT :limit

-- name: bookings_by_part() :event_id text :number text :email text :before int :most int :limit int
-- A scan, bounded by the newest bookings: their numbers, and the addresses of those that are live or were bought.
SELECT :booking FROM (
  SELECT n.fence FROM (
    SELECT fence, id, fan, state FROM bookings WHERE event_id = :event_id AND fence < :before
    ORDER BY fence DESC LIMIT :most
  ) AS n LEFT JOIN contacts AS c ON c.fan = n.fan
  WHERE (:number <> '' AND n.id LIKE :number ESCAPE '!')
    OR (:email <> '' AND n.state <> 'expired' AND c.email LIKE :email ESCAPE '!')
  ORDER BY n.fence DESC LIMIT :limit
) AS f CROSS JOIN bookings AS b
WHERE b.fence = f.fence{ AND b.event_id = :event_id} ORDER BY b.fence DESC

-- name: contacts_of(fan text)
SELECT c.fan, c.email, c.name FROM :rows CROSS JOIN contacts AS c
  WHERE c.fan = r.fan AND (c.email <> '' OR c.name <> '')

-- name: seats_had(booking_id text, seat_index int)
SELECT s.seat_index FROM :rows :event_of r.booking_id CROSS JOIN booking_seats AS s
WHERE s.booking_id = r.booking_id{ AND s.event_id = d.event_id} AND s.seat_index = r.seat_index

-- name: endpoints_of_organiser() :organiser text :after text :limit int
SELECT id, organiser, event_id, url, secret, facts, active FROM webhook_endpoints
WHERE organiser = :organiser AND active = 1 AND id > :after ORDER BY id LIMIT :limit

-- name: write_endpoints(id text, organiser text, event_id text, url text, secret text, facts text, active int, now_us int)
-- Like put_endpoints, and returns which were written.
INSERT INTO webhook_endpoints (id, organiser, event_id, url, secret, facts, active, changed_at_us)
SELECT r.id, r.organiser, r.event_id, r.url, r.secret, r.facts, r.active, r.now_us FROM :rows WHERE true
ON CONFLICT (id) DO UPDATE SET url = excluded.url, secret = excluded.secret, facts = excluded.facts,
  active = excluded.active, changed_at_us = excluded.changed_at_us
RETURNING id

-- name: deliveries_of_endpoint() :organiser text :pattern text :before int :limit int
-- An endpoint's deliveries, newest first.
SELECT number, dedupe, delivery_state, attempts, created_at_us, next_at_us, last_error, body FROM deliveries
WHERE kind = 'webhook' AND lane = :organiser AND number < :before AND dedupe LIKE :pattern
ORDER BY number DESC LIMIT :limit

-- name: redeliver(number int, organiser text, endpoint_prefix text, now_us int)
-- Queued again: its three days start anew.
UPDATE deliveries AS d SET delivery_state = 'waiting', attempts = 0, created_at_us = r.now_us, next_at_us = r.now_us,
  leased_until_us = 0, last_error = '', changed_at_us = r.now_us
FROM :rows WHERE d.number = r.number AND coalesce(d.kind, '') = 'webhook' AND d.lane = r.organiser
  AND substr(d.dedupe, 1, length(r.endpoint_prefix)) = r.endpoint_prefix
RETURNING d.number

-- name: box_office_totals() :event_id text :low text :high text :from_us int :before_us int
-- Sales by staff: who, how it was paid, and what was given back of it. Servers before schema 41 write the seller into
-- `session`.
SELECT coalesce(b.sold_by, b.session), coalesce(p.method, 'free'), count(*), sum(b.seat_count),
  coalesce(sum(p.amount_minor), 0), coalesce(sum((SELECT sum(f.amount_minor) FROM refunds AS f
    WHERE f.booking_id = b.id{ AND f.event_id = b.event_id} AND f.refund_state = 'done')), 0)
FROM bookings AS b
LEFT JOIN payments AS p ON p.booking_id = b.id{ AND p.event_id = b.event_id} AND p.provider = 'external'
WHERE b.event_id = :event_id AND b.fan >= :low AND b.fan < :high
  AND b.confirmed_at_us >= :from_us AND b.confirmed_at_us < :before_us
GROUP BY 1, 2 ORDER BY 1, 2

-- name: waitlist_page() :event_id text :entry_state text :after int :limit int
SELECT w.number, w.id, w.event_id, w.fan, w.seat_count, w.sections, w.split_ok, w.rank, w.entry_state, w.offers_made,
  w.lapses, w.created_at_us
FROM waitlist AS w WHERE w.event_id = :event_id AND w.number > :after
  AND (:entry_state = '' OR w.entry_state = :entry_state)
ORDER BY w.number LIMIT :limit

-- name: waitlist_counts() :event_id text
SELECT entry_state, count(*), sum(seat_count) FROM waitlist WHERE event_id = :event_id GROUP BY entry_state

-- name: admit_tickets(ticket_id text, event_id text, at_us int, again int)
-- One conditional update admits a ticket, so exactly one of many gates admits it. `again`: also one that has left.
UPDATE tickets AS t SET scanned_at_us = coalesce(t.scanned_at_us, r.at_us), left_at_us = NULL
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id AND coalesce(t.ticket_state, '') = 'valid'
  AND (t.scanned_at_us IS NULL OR (r.again = 1 AND t.left_at_us IS NOT NULL))
RETURNING t.id

-- name: let_out_tickets(ticket_id text, event_id text, at_us int)
-- Of many gates, exactly one lets a ticket out.
UPDATE tickets AS t SET left_at_us = r.at_us
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id AND coalesce(t.ticket_state, '') = 'valid'
  AND t.scanned_at_us IS NOT NULL AND t.left_at_us IS NULL
RETURNING t.id

-- name: admissions_page() :event_id text :after int :limit int
SELECT number, id, event_id, ticket_id, gate, at_us, way FROM scans WHERE event_id = :event_id AND number > :after
ORDER BY number LIMIT :limit

-- name: remove_scans(id text, event_id text, ticket_id text)
-- Undoes a mistaken admission.
DELETE FROM scans WHERE (id, event_id, ticket_id) IN (SELECT r.id, r.event_id, r.ticket_id FROM :rows) RETURNING id

-- name: restamp_scanned(ticket_id text, event_id text)
-- After a scan was removed: the earliest remaining one, or none.
UPDATE tickets AS t SET scanned_at_us = (
  SELECT min(s.at_us) FROM scans AS s WHERE s.ticket_id = t.id AND s.event_id = t.event_id AND s.way = 'in')
FROM :rows WHERE t.id = r.ticket_id AND t.event_id = r.event_id

-- name: tickets_by_id(id text, event_id text)
SELECT t.id, t.ticket_state FROM :rows CROSS JOIN tickets AS t WHERE t.id = r.id AND t.event_id = r.event_id

-- name: revocation_mark() :event_id text
-- Changes whenever the revocation list does.
SELECT count(*), coalesce(max(changed_at_us), 0) FROM tickets WHERE event_id = :event_id AND ticket_state = 'revoked'

-- name: gate_counts() :event_id text
SELECT gate, sum(CASE WHEN way = 'in' THEN 1 ELSE 0 END), count(DISTINCT CASE WHEN way = 'in' THEN ticket_id END),
  min(at_us), max(at_us), sum(CASE WHEN way = 'out' THEN 1 ELSE 0 END)
FROM scans WHERE event_id = :event_id
GROUP BY gate ORDER BY gate LIMIT 1000

-- name: gate_totals() :event_id text
-- Somebody who was seen at the exit alone came in at a gate that has not reported yet.
SELECT count(*), sum(CASE WHEN scanned_at_us IS NOT NULL AND left_at_us IS NULL THEN 1 ELSE 0 END), count(left_at_us)
FROM tickets WHERE event_id = :event_id AND ticket_state = 'valid'
