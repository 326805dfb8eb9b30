-- name: put_organiser(id text, name text, now_us int)
INSERT INTO organisers (id, name, created_at_us) SELECT r.id, r.name, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING RETURNING id

-- name: organisers_page() :after text :limit int
SELECT o.id, o.name, o.created_at_us FROM organisers AS o WHERE o.id > :after ORDER BY o.id LIMIT :limit

-- name: organisers_by_id(id text)
SELECT o.id, o.name, o.created_at_us FROM :rows CROSS JOIN organisers AS o WHERE o.id = r.id

-- name: put_sellers(organiser_id text, name text, address text, tax_id text, tax_basis_points int, now_us int, invoice_prefix text, fees text, contact_email text)
INSERT INTO sellers (organiser_id, name, address, tax_id, tax_basis_points, changed_at_us, invoice_prefix, fees,
  contact_email)
SELECT r.organiser_id, r.name, r.address, r.tax_id, r.tax_basis_points, r.now_us, r.invoice_prefix, r.fees,
  r.contact_email
FROM :rows WHERE true
ON CONFLICT (organiser_id) DO UPDATE SET name = excluded.name, address = excluded.address, tax_id = excluded.tax_id,
  tax_basis_points = excluded.tax_basis_points, changed_at_us = excluded.changed_at_us,
  invoice_prefix = excluded.invoice_prefix, fees = excluded.fees, contact_email = excluded.contact_email
RETURNING organiser_id

-- name: seller_of() :organiser_id text
SELECT s.organiser_id, s.name, s.address, s.tax_id, s.tax_basis_points, s.invoice_prefix, s.fees,
  s.contact_email
FROM sellers AS s WHERE s.organiser_id = :organiser_id

-- name: keep_sellers(organiser_id text, name text, address text, tax_id text, tax_basis_points int, now_us int)
-- The seller's details from now on. Earlier details stay for earlier receipts.
INSERT INTO seller_history (organiser_id, since_us, name, address, tax_id, tax_basis_points)
SELECT r.organiser_id, r.now_us, r.name, r.address, r.tax_id, r.tax_basis_points FROM :rows WHERE true
ON CONFLICT (organiser_id, since_us) DO UPDATE SET name = excluded.name, address = excluded.address,
  tax_id = excluded.tax_id, tax_basis_points = excluded.tax_basis_points

-- name: sellers_of(organiser_id text)
-- The seller details of organisers, oldest first, each with the time since when it is valid.
SELECT h.organiser_id, h.name, h.address, h.tax_id, h.tax_basis_points, h.since_us
FROM :rows CROSS JOIN seller_history AS h WHERE h.organiser_id = r.organiser_id ORDER BY h.since_us

-- name: keep_tax_rates(event_id text, since_us int, tax_basis_points int)
-- An event's rate (-1: the seller's). The row with since_us 0 is the initial one and is written once.
INSERT INTO tax_rate_history (event_id, since_us, tax_basis_points)
SELECT r.event_id, r.since_us, r.tax_basis_points FROM :rows WHERE true
ON CONFLICT (event_id, since_us) DO UPDATE SET tax_basis_points = excluded.tax_basis_points
  WHERE tax_rate_history.since_us > 0

-- name: tax_rates_of(event_id text)
-- The own tax rates of events, oldest first, each with the time since when it is valid.
SELECT h.event_id, h.tax_basis_points, h.since_us
FROM :rows CROSS JOIN tax_rate_history AS h WHERE h.event_id = r.event_id ORDER BY h.since_us

-- name: lock_organiser() :id text
-- One change of a team at a time, so that the last owner is recognised.
SELECT id FROM organisers WHERE id = :id :for_update

-- name: owners_of() :organiser_id text
SELECT id FROM staff WHERE organiser_id = :organiser_id AND role = 'owner' ORDER BY id LIMIT 2

-- name: add_staff(id text, organiser_id text, email text, name text, role text, password_hash text, now_us int)
INSERT INTO staff (id, organiser_id, email, name, role, password_hash, totp_sealed, totp_step, created_at_us,
  changed_at_us)
SELECT r.id, r.organiser_id, r.email, r.name, r.role, r.password_hash, '', 0, r.now_us, r.now_us FROM :rows WHERE true
ON CONFLICT DO NOTHING RETURNING id

-- name: staff_by_id() :id text
SELECT id, organiser_id, email, name, role, password_hash, totp_sealed, totp_step, created_at_us FROM staff
  WHERE id = :id

-- name: staff_by_email() :email text
SELECT id, organiser_id, email, name, role, password_hash, totp_sealed, totp_step, created_at_us FROM staff
WHERE email = :email

-- name: staff_of_organiser() :organiser_id text :limit int
SELECT id, organiser_id, email, name, role, password_hash, totp_sealed, totp_step, created_at_us FROM staff
WHERE organiser_id = :organiser_id ORDER BY id LIMIT :limit

-- name: set_role(id text, organiser_id text, role text, now_us int)
UPDATE staff AS s SET role = r.role, changed_at_us = r.now_us FROM :rows
WHERE s.id = r.id AND s.organiser_id = r.organiser_id RETURNING s.id

-- name: drop_staff(id text, organiser_id text)
DELETE FROM staff WHERE (id, organiser_id) IN (SELECT r.id, r.organiser_id FROM :rows) RETURNING id

-- name: set_password(id text, password_hash text, old_hash text, now_us int)
-- Only over the password that was checked: of two changes at once, one wins.
UPDATE staff AS s SET password_hash = r.password_hash, changed_at_us = r.now_us FROM :rows
WHERE s.id = r.id AND s.password_hash = r.old_hash RETURNING s.id

-- name: reset_staff(id text, password_hash text, now_us int)
UPDATE staff AS s SET password_hash = r.password_hash, totp_sealed = '', totp_step = 0, changed_at_us = r.now_us
FROM :rows WHERE s.id = r.id RETURNING s.id

-- name: set_totp(id text, totp_sealed text, old_sealed text, totp_step int, now_us int)
UPDATE staff AS s SET totp_sealed = r.totp_sealed, totp_step = r.totp_step, changed_at_us = r.now_us FROM :rows
WHERE s.id = r.id AND s.totp_sealed = r.old_sealed RETURNING s.id

-- name: use_totp_step(id text, totp_step int)
-- A code works once: its step must be later than the last one used.
UPDATE staff AS s SET totp_step = r.totp_step FROM :rows WHERE s.id = r.id AND s.totp_step < r.totp_step RETURNING s.id

-- name: add_recovery_codes(staff_id text, code_hash text)
INSERT INTO recovery_codes (staff_id, code_hash) SELECT r.staff_id, r.code_hash FROM :rows
  WHERE true ON CONFLICT DO NOTHING

-- name: use_recovery_code(staff_id text, code_hash text)
DELETE FROM recovery_codes WHERE (staff_id, code_hash) IN (SELECT r.staff_id, r.code_hash FROM :rows) RETURNING staff_id

-- name: drop_recovery_codes(staff_id text)
DELETE FROM recovery_codes WHERE staff_id IN (SELECT r.staff_id FROM :rows)

-- name: add_invitation(id text, secret_hash text, organiser_id text, email text, role text, made_by text, staff_id text, now_us int, ends_at_us int)
INSERT INTO invitations (id, secret_hash, organiser_id, email, role, made_by, staff_id, created_at_us, ends_at_us,
  used_at_us)
SELECT r.id, r.secret_hash, r.organiser_id, r.email, r.role, r.made_by, r.staff_id, r.now_us, r.ends_at_us, 0 FROM :rows

-- name: open_invitation() :secret_hash text :now_us int
SELECT id, organiser_id, email, role, made_by, created_at_us, ends_at_us, staff_id FROM invitations
WHERE secret_hash = :secret_hash AND used_at_us = 0 AND ends_at_us > :now_us

-- name: use_invitation(secret_hash text, now_us int)
UPDATE invitations AS i SET used_at_us = r.now_us FROM :rows
WHERE i.secret_hash = r.secret_hash AND i.used_at_us = 0 AND i.ends_at_us > r.now_us
RETURNING i.id, i.organiser_id, i.email, i.role, i.made_by, i.created_at_us, i.ends_at_us, i.staff_id

-- name: open_invitations_of() :organiser_id text :now_us int :limit int
SELECT id, organiser_id, email, role, made_by, created_at_us, ends_at_us, staff_id FROM invitations
WHERE organiser_id = :organiser_id AND used_at_us = 0 AND ends_at_us > :now_us ORDER BY created_at_us LIMIT :limit

-- name: drop_invitation(id text, organiser_id text)
DELETE FROM invitations WHERE (id, organiser_id) IN (SELECT r.id, r.organiser_id FROM :rows)
  AND used_at_us = 0 RETURNING id

-- name: drop_invitations_for(organiser_id text, email text)
DELETE FROM invitations
WHERE (organiser_id, email) IN (SELECT r.organiser_id, r.email FROM :rows) AND used_at_us = 0

-- name: add_api_key(id text, secret_hash text, organiser_id text, name text, scopes text, made_by text, now_us int, ends_at_us int)
INSERT INTO api_keys (id, secret_hash, organiser_id, name, scopes, made_by, created_at_us, ends_at_us, used_at_us)
SELECT r.id, r.secret_hash, r.organiser_id, r.name, r.scopes, r.made_by, r.now_us, r.ends_at_us, 0 FROM :rows

-- name: api_key_by_hash() :secret_hash text
-- With its creator's current role. The key of a creator who left no longer works.
SELECT k.id, k.organiser_id, k.name, k.scopes, k.made_by, k.created_at_us, k.ends_at_us, k.used_at_us, s.role
FROM api_keys AS k LEFT JOIN staff AS s ON s.id = k.made_by AND s.organiser_id = k.organiser_id
WHERE k.secret_hash = :secret_hash

-- name: api_keys_of() :organiser_id text :limit int
SELECT k.id, k.organiser_id, k.name, k.scopes, k.made_by, k.created_at_us, k.ends_at_us, k.used_at_us, s.role
FROM api_keys AS k LEFT JOIN staff AS s ON s.id = k.made_by AND s.organiser_id = k.organiser_id
WHERE k.organiser_id = :organiser_id ORDER BY k.id LIMIT :limit

-- name: drop_api_key(id text, organiser_id text)
DELETE FROM api_keys WHERE (id, organiser_id) IN (SELECT r.id, r.organiser_id FROM :rows) RETURNING id

-- name: touch_api_key(id text, now_us int)
UPDATE api_keys AS k SET used_at_us = r.now_us FROM :rows WHERE k.id = r.id AND k.used_at_us < r.now_us

-- name: add_session(id text, secret_hash text, kind text, subject text, stage text, now_us int, ends_at_us int, idle_us int, agent text)
INSERT INTO sessions (id, secret_hash, kind, subject, stage, created_at_us, seen_at_us, ends_at_us, idle_us, agent)
SELECT r.id, r.secret_hash, r.kind, r.subject, r.stage, r.now_us, r.now_us, r.ends_at_us, r.idle_us, r.agent FROM :rows

-- name: session_by_hash() :secret_hash text
SELECT s.id, s.kind, s.subject, s.stage, s.created_at_us, s.seen_at_us, s.ends_at_us, s.idle_us, s.agent,
  t.organiser_id, t.role
FROM sessions AS s LEFT JOIN staff AS t ON t.id = s.subject WHERE s.secret_hash = :secret_hash

-- name: sessions_of() :subject text :now_us int :limit int
SELECT s.id, s.kind, s.subject, s.stage, s.created_at_us, s.seen_at_us, s.ends_at_us, s.idle_us, s.agent,
  t.organiser_id, t.role
FROM sessions AS s LEFT JOIN staff AS t ON t.id = s.subject
WHERE s.subject = :subject AND s.ends_at_us > :now_us AND s.seen_at_us + s.idle_us > :now_us
ORDER BY s.created_at_us DESC LIMIT :limit

-- name: touch_session(id text, now_us int)
UPDATE sessions AS s SET seen_at_us = r.now_us FROM :rows WHERE s.id = r.id AND s.seen_at_us < r.now_us

-- name: drop_session(id text, subject text)
DELETE FROM sessions WHERE (id, subject) IN (SELECT r.id, r.subject FROM :rows) RETURNING id

-- name: drop_sessions_of(subject text)
DELETE FROM sessions WHERE subject IN (SELECT r.subject FROM :rows) RETURNING id

-- name: drop_old_sessions() :now_us int :limit int
DELETE FROM sessions WHERE id IN (SELECT s.id FROM sessions AS s WHERE s.ends_at_us <= :now_us ORDER BY s.ends_at_us
  LIMIT :limit)

-- name: add_magic_link(secret_hash text, browser_hash text, email text, now_us int, ends_at_us int)
INSERT INTO magic_links (secret_hash, browser_hash, email, created_at_us, ends_at_us, used_at_us)
SELECT r.secret_hash, r.browser_hash, r.email, r.now_us, r.ends_at_us, 0 FROM :rows

-- name: use_magic_link(secret_hash text, browser_hash text, now_us int)
UPDATE magic_links AS m SET used_at_us = r.now_us FROM :rows
WHERE m.secret_hash = r.secret_hash AND m.browser_hash = r.browser_hash AND m.used_at_us = 0 AND m.ends_at_us > r.now_us
RETURNING m.email

-- name: use_confirmed_link(secret_hash text, now_us int)
UPDATE magic_links AS m SET used_at_us = r.now_us FROM :rows
WHERE m.secret_hash = r.secret_hash AND m.used_at_us = 0 AND m.ends_at_us > r.now_us
RETURNING m.email

-- name: open_magic_link() :secret_hash text :now_us int
SELECT email FROM magic_links WHERE secret_hash = :secret_hash AND used_at_us = 0 AND ends_at_us > :now_us

-- name: drop_old_links() :now_us int :limit int
DELETE FROM magic_links
WHERE secret_hash IN (SELECT m.secret_hash FROM magic_links AS m WHERE m.ends_at_us <= :now_us ORDER BY m.ends_at_us
  LIMIT :limit)

-- name: drop_links_to(email text)
DELETE FROM magic_links WHERE email IN (SELECT r.email FROM :rows)

-- name: drop_sent_account_mail() :limit int
-- Sealed one-time links and addresses are not needed once sent or given up.
DELETE FROM deliveries WHERE number IN (
  SELECT d.number FROM deliveries AS d WHERE d.kind IN ('account', 'signup') AND d.delivery_state <> 'waiting'
    ORDER BY d.number LIMIT :limit)

-- name: add_fan(id text, email text, now_us int)
INSERT INTO fans (id, email, created_at_us, erased_at_us) SELECT r.id, r.email, r.now_us, 0 FROM :rows WHERE true
ON CONFLICT DO NOTHING RETURNING id

-- name: fan_by_id() :id text
SELECT id, email, created_at_us, erased_at_us FROM fans WHERE id = :id

-- name: fan_by_email() :email text
SELECT id, email, created_at_us, erased_at_us FROM fans WHERE email = :email AND email <> ''

-- name: names_of_address() :email text :limit int
-- Everyone who gave this address and has no account. The caller must have proof of the address.
SELECT c.fan FROM contacts AS c LEFT JOIN fans AS f ON f.id = c.fan
WHERE c.email = :email AND c.email <> '' AND coalesce(f.email, '') = ''
ORDER BY c.changed_at_us DESC, c.fan LIMIT :limit

-- name: is_reached_at() :fan text :email text
SELECT c.fan FROM contacts AS c LEFT JOIN fans AS f ON f.id = c.fan
WHERE c.fan = :fan AND c.email = :email AND c.email <> '' AND coalesce(f.email, '') = ''

-- name: purchases_of_address() :email text
-- Purchases with an address by people without an account.
SELECT :booking FROM contacts AS c LEFT JOIN fans AS f ON f.id = c.fan
JOIN bookings AS b ON b.fan = c.fan AND b.state IN ('confirmed', 'cancelled', 'refunded')
WHERE c.email = :email AND c.email <> '' AND coalesce(f.email, '') = ''
ORDER BY b.created_at_us DESC, b.id DESC LIMIT 1000

-- name: erase_fan(id text, now_us int)
UPDATE fans AS f SET email = '', erased_at_us = r.now_us FROM :rows
  WHERE f.id = r.id AND f.erased_at_us = 0 RETURNING f.id

-- name: drop_contacts(fan text)
DELETE FROM contacts WHERE fan IN (SELECT r.fan FROM :rows)

-- name: drop_name_tails(fan text)
DELETE FROM name_tails WHERE fan IN (SELECT r.fan FROM :rows)

-- name: add_name_tails(event_id text, tail text, fan text)
INSERT INTO name_tails (event_id, tail, fan) SELECT r.event_id, r.tail, r.fan FROM :rows
  WHERE true ON CONFLICT DO NOTHING

-- name: events_bought() :fan text
SELECT DISTINCT event_id FROM bookings WHERE fan = :fan AND state IN ('confirmed', 'cancelled', 'refunded') LIMIT 1000

-- name: bought_elsewhere() :fan text :organiser_id text
-- Whether a person has purchases with another organiser too.
SELECT 1 FROM bookings AS b JOIN events AS e ON e.id = b.event_id
WHERE b.fan = :fan AND b.state IN ('confirmed', 'cancelled', 'refunded') AND e.organiser_id <> :organiser_id LIMIT 1

-- name: has_name_in() :event_id text :fan text
SELECT t.fan FROM name_tails AS t WHERE t.fan = :fan AND t.event_id = :event_id LIMIT 1

-- name: names_of_buyers(id text)
SELECT b.id, c.name FROM :rows :event_of r.id CROSS JOIN bookings AS b
JOIN contacts AS c ON c.fan = b.fan WHERE b.id = r.id{ AND b.event_id = d.event_id}

-- name: drop_in_app(fan text)
DELETE FROM in_app_messages WHERE fan IN (SELECT r.fan FROM :rows)

-- name: purchases_of(fan text)
-- A fan's purchases, including cancelled and refunded ones.
SELECT :booking FROM :rows
LEFT JOIN bookings AS b ON b.fan = r.fan AND b.state IN ('confirmed', 'cancelled', 'refunded')
WHERE coalesce(b.id, '') <> ''
ORDER BY b.created_at_us DESC, b.id DESC LIMIT 1000
