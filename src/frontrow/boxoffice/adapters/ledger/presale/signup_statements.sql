-- name: ask_signups(id text, event_id text, purpose text, email text, locale text, state text, now_us int)
-- One row per address; asking again keeps what was confirmed, and may confirm what was only asked. A presale that takes
-- no registrations gets none.
INSERT INTO sale_signups (id, event_id, purpose, email, locale, signup_state, code_number, created_at_us,
  confirmed_at_us,
  changed_at_us)
SELECT r.id, r.event_id, r.purpose, r.email, r.locale, r.state, 0, r.now_us,
  CASE WHEN r.state = 'confirmed' THEN r.now_us ELSE 0 END, r.now_us FROM :rows
WHERE r.purpose = 'notice' OR EXISTS (
  SELECT 1 FROM presales AS p WHERE p.event_id = r.event_id AND p.presale_state = 'open' AND p.closes_at_us > r.now_us)
ON CONFLICT (event_id, purpose, email) DO UPDATE SET locale = excluded.locale,
  signup_state = CASE WHEN sale_signups.signup_state = 'asked' THEN excluded.signup_state
    ELSE sale_signups.signup_state END,
  confirmed_at_us = CASE WHEN sale_signups.signup_state = 'asked' THEN excluded.confirmed_at_us
    ELSE sale_signups.confirmed_at_us END,
  changed_at_us = excluded.changed_at_us
RETURNING id, signup_state

-- name: confirm_signups(id text, now_us int)
-- A registration counts only while its presale takes registrations.
UPDATE sale_signups AS s SET signup_state = 'confirmed', confirmed_at_us = r.now_us, changed_at_us = r.now_us FROM :rows
WHERE s.id = r.id AND s.signup_state = 'asked' AND (s.purpose = 'notice' OR EXISTS (
  SELECT 1 FROM presales AS p WHERE p.event_id = s.event_id AND p.presale_state = 'open' AND p.closes_at_us > r.now_us))
RETURNING s.id

-- name: signup_by_id() :id text
SELECT id, event_id, purpose, email, locale, signup_state, code_number, created_at_us, confirmed_at_us FROM sale_signups
WHERE id = :id

-- name: signups_of_address() :email text
SELECT id, event_id, purpose, email, locale, signup_state, code_number, created_at_us, confirmed_at_us FROM sale_signups
WHERE email = :email ORDER BY id

-- name: drop_signups(id text)
-- Stops all mail to the address. The result of a draw stays, so that the draw can still be verified.
DELETE FROM sale_signups WHERE id IN (SELECT r.id FROM :rows) AND signup_state IN ('asked', 'confirmed', 'sent')
RETURNING id

-- name: drop_signups_of(email text)
DELETE FROM sale_signups WHERE email IN (SELECT r.email FROM :rows)

-- name: drop_old_signups() :before_us int :limit int
-- Addresses that nobody confirmed.
DELETE FROM sale_signups WHERE id IN (
  SELECT s.id FROM sale_signups AS s WHERE s.signup_state = 'asked' AND s.created_at_us < :before_us LIMIT :limit)

-- name: events_with_notices() :limit int
SELECT DISTINCT event_id FROM sale_signups WHERE purpose = 'notice' AND signup_state = 'confirmed'
ORDER BY event_id LIMIT :limit

-- name: waiting_notices() :event_id text :limit int
SELECT id, event_id, purpose, email, locale, signup_state, code_number, created_at_us, confirmed_at_us FROM sale_signups
WHERE purpose = 'notice' AND event_id = :event_id AND signup_state = 'confirmed' ORDER BY id LIMIT :limit :skip_locked

-- name: save_signup_states(id text, state text, code_number int, now_us int)
UPDATE sale_signups AS s SET signup_state = r.state, code_number = r.code_number, changed_at_us = r.now_us FROM :rows
WHERE s.id = r.id AND coalesce(s.signup_state, '') = 'confirmed' RETURNING s.id

-- name: registrations_page() :event_id text :after text :limit int
SELECT id, event_id, purpose, email, locale, signup_state, code_number, created_at_us, confirmed_at_us FROM sale_signups
WHERE event_id = :event_id AND purpose = 'presale' AND signup_state <> 'asked' AND id > :after ORDER BY id LIMIT :limit

-- name: signup_counts() :event_id text
SELECT purpose, signup_state, count(*) FROM sale_signups WHERE event_id = :event_id GROUP BY purpose, signup_state
ORDER BY purpose, signup_state

-- name: put_presales(event_id text, opens_at_us int, closes_at_us int, codes int, draw_order text, lane text, seed text, now_us int)
-- Times and codes can change until the draw. Order, lane and seed are fixed when people register.
INSERT INTO presales (event_id, opens_at_us, closes_at_us, codes, draw_order, lane, seed, beacon, batches, last_rank,
  presale_state, created_at_us, changed_at_us)
SELECT r.event_id, r.opens_at_us, r.closes_at_us, r.codes, r.draw_order, r.lane, r.seed, '', '[]', '', 'open', r.now_us,
  r.now_us FROM :rows WHERE true
ON CONFLICT (event_id) DO UPDATE SET opens_at_us = excluded.opens_at_us, closes_at_us = excluded.closes_at_us,
  codes = excluded.codes, changed_at_us = excluded.changed_at_us
WHERE presales.presale_state = 'open' AND presales.draw_order = excluded.draw_order AND presales.lane = excluded.lane
RETURNING event_id

-- name: presale_by_event() :event_id text
SELECT event_id, opens_at_us, closes_at_us, codes, draw_order, lane, seed, beacon, batches, last_rank, presale_state,
  created_at_us, changed_at_us FROM presales WHERE event_id = :event_id

-- name: drawing_presales() :limit int
SELECT event_id, opens_at_us, closes_at_us, codes, draw_order, lane, seed, beacon, batches, last_rank, presale_state,
  created_at_us, changed_at_us FROM presales WHERE presale_state = 'drawing' ORDER BY event_id LIMIT :limit

-- name: begin_draw(event_id text, beacon text, batches text, now_us int)
-- From now on nobody can register or confirm, so every draw has the same entries.
UPDATE presales AS p SET presale_state = 'drawing', beacon = r.beacon, batches = r.batches, changed_at_us = r.now_us
FROM :rows WHERE p.event_id = r.event_id AND p.presale_state = 'open'
  AND p.closes_at_us <= r.now_us RETURNING p.event_id

-- name: finish_draw(event_id text, last_rank text, now_us int)
UPDATE presales AS p SET presale_state = 'drawn', last_rank = r.last_rank, changed_at_us = r.now_us FROM :rows
WHERE p.event_id = r.event_id AND coalesce(p.presale_state, '') = 'drawing' RETURNING p.event_id
