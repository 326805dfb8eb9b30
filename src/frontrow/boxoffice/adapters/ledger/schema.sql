-- The ledger's tables and indexes, to read. Nothing runs this file: the migrations beside it make the schema, and
-- `python -m docsite.ledger_schema` writes it from them. PostgreSQL has the same names. No two live bookings share a
-- seat because of the unique index `one_active_booking_per_seat`.

CREATE TABLE add_on_redemptions ( id text PRIMARY KEY, event_id text NOT NULL, booking_id text NOT NULL, add_on text
  NOT NULL, quantity bigint NOT NULL CHECK (quantity >= 1), gate text NOT NULL, made_by text NOT NULL, at_us bigint
  NOT NULL, refused text NOT NULL DEFAULT '' CHECK (refused IN ('', 'used_up', 'not_bought')), undone_at_us bigint );

CREATE INDEX redemptions_of_booking ON add_on_redemptions (booking_id);

CREATE INDEX redemptions_of_event ON add_on_redemptions (event_id, booking_id);

CREATE TABLE api_keys ( id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, name text
  NOT NULL, scopes text NOT NULL, made_by text NOT NULL, created_at_us bigint NOT NULL, ends_at_us bigint NOT NULL,
  used_at_us bigint NOT NULL );

CREATE INDEX api_keys_of_organiser ON api_keys (organiser_id, id);

CREATE TABLE audit_heads (chain text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL);

CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log BEGIN SELECT RAISE(ABORT, 'audit_log is append-only');
  END;

CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN SELECT RAISE(ABORT, 'audit_log is append-only');
  END;

CREATE TABLE audit_log ( chain text NOT NULL, seq bigint NOT NULL, at_us bigint NOT NULL, body text NOT NULL,
  prev_hash text NOT NULL, hash text NOT NULL, PRIMARY KEY (chain, seq) );

CREATE TABLE blocked_addresses ( channel text NOT NULL, address_digest text NOT NULL, reason text NOT NULL, detail
  text NOT NULL, since_us bigint NOT NULL, PRIMARY KEY (channel, address_digest) );

CREATE TABLE booking_seats ( booking_id text NOT NULL, seat_index bigint NOT NULL, event_id text NOT NULL, price_minor
  bigint NOT NULL, active smallint NOT NULL CHECK (active IN (0, 1)), PRIMARY KEY (booking_id, seat_index) );

CREATE UNIQUE INDEX one_active_booking_per_seat ON booking_seats (event_id, seat_index) WHERE active = 1;

CREATE INDEX seat_history ON booking_seats (event_id, seat_index) WHERE active = 0;

CREATE TABLE booking_uses ( booking_id text NOT NULL, counter text NOT NULL, quantity bigint NOT NULL CHECK (quantity
  > 0), event_id text NOT NULL DEFAULT '', PRIMARY KEY (booking_id, counter) );

CREATE INDEX booking_uses_of_counter ON booking_uses (counter);

CREATE TABLE bookings ( fence integer PRIMARY KEY AUTOINCREMENT, id text NOT NULL UNIQUE, event_id text NOT NULL, fan
  text NOT NULL, state text NOT NULL CHECK (state IN ('held', 'paying', 'confirmed', 'expired', 'cancelled',
  'refunded')), seat_count bigint NOT NULL, seats text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  session text NOT NULL, created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, hold_expires_at_us bigint NOT
  NULL, confirmed_at_us bigint , price_lines text NOT NULL DEFAULT '', origin text, visit_id text, sold_by text,
  payment_begun_at_us bigint);

CREATE INDEX active_bookings_of_fan ON bookings (event_id, fan) WHERE state IN ('held', 'paying', 'confirmed');

CREATE INDEX bookings_of_event ON bookings (event_id, fence);

CREATE INDEX holds_by_end ON bookings (hold_expires_at_us) WHERE state IN ('held', 'paying');

CREATE INDEX live_bookings_of_event ON bookings (event_id, id) WHERE state IN ('held', 'paying', 'confirmed');

CREATE INDEX purchases_of_fan ON bookings (fan, created_at_us) WHERE state IN ('confirmed', 'cancelled', 'refunded');

CREATE TABLE brands ( organiser_id text PRIMARY KEY, colour text NOT NULL DEFAULT '', logo text NOT NULL DEFAULT '',
  logo_width bigint NOT NULL DEFAULT 0, logo_height bigint NOT NULL DEFAULT 0, changed_at_us bigint NOT NULL );

CREATE INDEX brands_by_change ON brands (changed_at_us);

CREATE TABLE buyer_messages ( id text PRIMARY KEY, event_id text NOT NULL, made_by text NOT NULL, audience_kind text
  NOT NULL CHECK (audience_kind IN ('all', 'section', 'tier', 'booking')), audience_key text NOT NULL, subject text
  NOT NULL, body text NOT NULL, message_state text NOT NULL CHECK (message_state IN ('draft', 'sending', 'sent')),
  created_at_us bigint NOT NULL, recipients bigint NOT NULL DEFAULT 0, last_fence bigint NOT NULL DEFAULT 0,
  all_queued smallint NOT NULL DEFAULT 0 CHECK (all_queued IN (0, 1)), sent bigint NOT NULL DEFAULT 0, failed bigint
  NOT NULL DEFAULT 0, skipped bigint NOT NULL DEFAULT 0, next_at_us bigint NOT NULL DEFAULT 0 );

CREATE INDEX buyer_messages_in_work ON buyer_messages (next_at_us) WHERE message_state = 'sending';

CREATE INDEX buyer_messages_of_event ON buyer_messages (event_id, created_at_us);

CREATE INDEX messages_to_one_booking ON buyer_messages (audience_key) WHERE audience_kind = 'booking';

CREATE TABLE cancellations ( event_id text PRIMARY KEY, job_state text NOT NULL CHECK (job_state IN ('running',
  'done')), refunded bigint NOT NULL, released bigint NOT NULL, stopped bigint NOT NULL, failed bigint NOT NULL,
  next_at_us bigint NOT NULL, started_at_us bigint NOT NULL, changed_at_us bigint NOT NULL , returned bigint NOT NULL
  DEFAULT 0);

CREATE INDEX cancellations_due ON cancellations (next_at_us) WHERE job_state = 'running';

CREATE TABLE catalogue_version (only_row bigint PRIMARY KEY CHECK (only_row = 1), version bigint NOT NULL);

CREATE TRIGGER changes_no_delete BEFORE DELETE ON changes BEGIN SELECT RAISE(ABORT, 'changes is append-only'); END;

CREATE TRIGGER changes_no_update BEFORE UPDATE ON changes BEGIN SELECT RAISE(ABORT, 'changes is append-only'); END;

CREATE TABLE changes ( number integer PRIMARY KEY AUTOINCREMENT, organiser_id text NOT NULL, event_id text NOT NULL,
  actor text NOT NULL, act text NOT NULL, detail text NOT NULL, at_us bigint NOT NULL );

CREATE INDEX changes_of_organiser ON changes (organiser_id, number);

CREATE TABLE contacts ( fan text PRIMARY KEY, locale text NOT NULL, email text NOT NULL, phone text NOT NULL, channels
  text NOT NULL, changed_at_us bigint NOT NULL , name text NOT NULL DEFAULT '', folded_name text NOT NULL DEFAULT '',
  proven_phone text NOT NULL DEFAULT '');

CREATE INDEX contacts_by_email ON contacts (email) WHERE email <> '';

CREATE TABLE deliveries ( number integer PRIMARY KEY AUTOINCREMENT, kind text NOT NULL, lane text NOT NULL, dedupe
  text NOT NULL UNIQUE, body text NOT NULL, delivery_state text NOT NULL, attempts bigint NOT NULL, created_at_us
  bigint NOT NULL, next_at_us bigint NOT NULL, leased_until_us bigint NOT NULL DEFAULT 0, last_error text NOT NULL
  DEFAULT '', changed_at_us bigint NOT NULL );

CREATE INDEX deliveries_due ON deliveries (kind, next_at_us) WHERE delivery_state = 'waiting';

CREATE INDEX deliveries_of_buyer_messages ON deliveries (lane) WHERE kind = 'buyer_message';

CREATE INDEX webhook_deliveries ON deliveries (lane, number) WHERE kind = 'webhook';

CREATE TABLE disputes ( provider text NOT NULL, ref text NOT NULL, payment_ref text NOT NULL, payment_id text NOT
  NULL, booking_id text NOT NULL, event_id text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
  dispute_state text NOT NULL CHECK (dispute_state IN ('open', 'won', 'lost', 'closed')), reason text NOT NULL,
  answer_by_us bigint NOT NULL, opened_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, PRIMARY KEY (provider,
  ref) );

CREATE INDEX disputes_of_booking ON disputes (booking_id);

CREATE INDEX disputes_of_event ON disputes (event_id, opened_at_us);

CREATE TABLE event_listings ( event_id text PRIMARY KEY, event_state text NOT NULL, shelf bigint NOT NULL GENERATED
  ALWAYS AS (CASE event_state WHEN 'draft' THEN 0 WHEN 'on_sale' THEN 1 WHEN 'sold_out' THEN 1 WHEN 'completed' THEN 2
  ELSE 3 END) STORED, starts_at_us bigint NOT NULL, starts_local_us bigint NOT NULL, sale_starts_at_us bigint NOT
  NULL, sale_ends_at_us bigint NOT NULL, over_at_us bigint NOT NULL, currency text NOT NULL, min_price_minor bigint
  NOT NULL, max_price_minor bigint NOT NULL, free_seats bigint NOT NULL, counted_at_us bigint NOT NULL ) WITHOUT ROWID;

CREATE INDEX listings_by_count ON event_listings (shelf, counted_at_us);

CREATE INDEX listings_by_currency ON event_listings (shelf, currency);

CREATE INDEX listings_by_end ON event_listings (shelf, over_at_us);

CREATE INDEX listings_by_price ON event_listings (shelf, min_price_minor);

CREATE INDEX listings_by_start ON event_listings (shelf, starts_at_us, event_id);

CREATE TABLE event_words ( word text NOT NULL, event_id text NOT NULL, source text NOT NULL CHECK (source IN ('event',
  'venue')), PRIMARY KEY (word, event_id, source) ) WITHOUT ROWID;

CREATE INDEX words_of_event ON event_words (event_id, word);

CREATE TRIGGER events_added AFTER INSERT ON events BEGIN UPDATE catalogue_version SET version = version + 1; UPDATE
  events SET change_number = (SELECT version FROM catalogue_version) WHERE id = new.id; UPDATE event_listings SET
  event_state = new.event_state WHERE event_id = new.id AND event_state <> new.event_state; END;

CREATE TRIGGER events_changed AFTER UPDATE OF document, event_state ON events BEGIN UPDATE catalogue_version SET
  version = version + 1; UPDATE events SET change_number = (SELECT version FROM catalogue_version) WHERE id = new.id;
  UPDATE event_listings SET event_state = new.event_state WHERE event_id = new.id AND event_state <> new.event_state;
  END;

CREATE TABLE events ( id text PRIMARY KEY, venue_id text NOT NULL, plan_hash text NOT NULL, name text NOT NULL,
  event_state text NOT NULL CHECK (event_state IN ('draft', 'on_sale', 'sold_out', 'completed', 'cancelled')),
  currency text NOT NULL, starts_at_us bigint NOT NULL, sale_starts_at_us bigint NOT NULL, sale_ends_at_us bigint NOT
  NULL, max_per_person bigint NOT NULL, document text NOT NULL, created_at_us bigint NOT NULL, changed_at_us bigint
  NOT NULL , organiser_id text NOT NULL DEFAULT 'org_default', change_number bigint NOT NULL DEFAULT 0);

CREATE INDEX events_at_venue ON events (venue_id, id);

CREATE INDEX events_by_change ON events (change_number, id);

CREATE INDEX events_by_start ON events (starts_at_us, id);

CREATE INDEX events_of_organiser ON events (organiser_id, starts_at_us, id);

CREATE TABLE fans ( id text PRIMARY KEY, email text NOT NULL, created_at_us bigint NOT NULL, erased_at_us bigint NOT
  NULL );

CREATE UNIQUE INDEX one_fan_per_address ON fans (email) WHERE email <> '';

CREATE TABLE feed_addresses ( staff_id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, created_at_us bigint NOT
  NULL );

CREATE TABLE idempotency_keys ( scope text NOT NULL, key text NOT NULL, request_hash text NOT NULL, booking_id text
  NOT NULL, created_at_us bigint NOT NULL, PRIMARY KEY (scope, key) );

CREATE TABLE in_app_messages ( id text PRIMARY KEY, fan text NOT NULL, subject text NOT NULL, body text NOT NULL,
  created_at_us bigint NOT NULL, read_at_us bigint , notice text NOT NULL DEFAULT '');

CREATE INDEX in_app_messages_of_fan ON in_app_messages (fan, created_at_us);

CREATE TABLE inbox ( source text NOT NULL, message_id text NOT NULL, received_at_us bigint NOT NULL, PRIMARY KEY
  (source, message_id) );

CREATE TABLE invitations ( id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, organiser_id text NOT NULL, email
  text NOT NULL, role text NOT NULL, made_by text NOT NULL, staff_id text NOT NULL, created_at_us bigint NOT NULL,
  ends_at_us bigint NOT NULL, used_at_us bigint NOT NULL );

CREATE INDEX invitations_of_organiser ON invitations (organiser_id, created_at_us);

CREATE TABLE invoice_numbers (organiser_id text PRIMARY KEY, last_number bigint NOT NULL);

CREATE TRIGGER invoices_no_delete BEFORE DELETE ON invoices BEGIN SELECT RAISE(ABORT, 'invoices is append-only'); END;

CREATE TRIGGER invoices_no_update BEFORE UPDATE ON invoices BEGIN SELECT RAISE(ABORT, 'invoices is append-only'); END;

CREATE TABLE invoices ( organiser_id text NOT NULL, number bigint NOT NULL, booking_id text NOT NULL, refund_id text
  NOT NULL, issued_at_us bigint NOT NULL, document text NOT NULL, PRIMARY KEY (organiser_id, number) );

CREATE UNIQUE INDEX one_invoice_per_sale_and_refund ON invoices (booking_id, refund_id);

CREATE TABLE ledger_heartbeat (id integer PRIMARY KEY CHECK (id = 1), beat_us bigint NOT NULL);

CREATE TABLE magic_links ( secret_hash text PRIMARY KEY, browser_hash text NOT NULL, email text NOT NULL,
  created_at_us bigint NOT NULL, ends_at_us bigint NOT NULL, used_at_us bigint NOT NULL );

CREATE INDEX magic_links_by_end ON magic_links (ends_at_us);

CREATE INDEX magic_links_of_address ON magic_links (email);

CREATE TABLE name_tails ( event_id text NOT NULL, tail text NOT NULL, fan text NOT NULL, PRIMARY KEY (event_id, tail,
  fan) );

CREATE INDEX name_tails_of_fan ON name_tails (fan);

CREATE TABLE offers ( id text PRIMARY KEY, entry_id text NOT NULL, event_id text NOT NULL, fan text NOT NULL,
  booking_id text NOT NULL, offer_state text NOT NULL, expires_at_us bigint NOT NULL, created_at_us bigint NOT NULL,
  changed_at_us bigint NOT NULL );

CREATE INDEX offers_of_fan ON offers (event_id, fan);

CREATE UNIQUE INDEX one_offer_per_booking ON offers (booking_id);

CREATE UNIQUE INDEX one_open_offer_per_entry ON offers (entry_id) WHERE offer_state = 'open';

CREATE INDEX open_offers_by_end ON offers (expires_at_us) WHERE offer_state = 'open';

CREATE TABLE organisers (id text PRIMARY KEY, name text NOT NULL, created_at_us bigint NOT NULL);

CREATE TABLE outbox ( number integer PRIMARY KEY AUTOINCREMENT, fact text NOT NULL, body text NOT NULL, event_id text
  NOT NULL, booking_id text NOT NULL, at_us bigint NOT NULL, leased_until_us bigint NOT NULL DEFAULT 0,
  published_at_us bigint );

CREATE INDEX facts_unpublished ON outbox (number) WHERE published_at_us IS NULL;

CREATE TABLE payment_accounts ( provider text NOT NULL, account text NOT NULL, organiser_id text NOT NULL,
  account_state text NOT NULL CHECK (account_state IN ('onboarding', 'active', 'restricted', 'closed')), reason text
  NOT NULL DEFAULT '', fee_basis_points bigint NOT NULL CHECK (fee_basis_points >= 0), made_at_us bigint NOT NULL,
  changed_at_us bigint NOT NULL, ended_at_us bigint NOT NULL DEFAULT 0, PRIMARY KEY (provider, account) );

CREATE UNIQUE INDEX one_payment_account_per_organiser ON payment_accounts (organiser_id) WHERE ended_at_us = 0;

CREATE TABLE payments ( id text PRIMARY KEY, booking_id text NOT NULL, attempt bigint NOT NULL, provider text NOT
  NULL, provider_ref text NOT NULL DEFAULT '', payment_state text NOT NULL, amount_minor bigint NOT NULL, currency
  text NOT NULL, idempotency_key text NOT NULL UNIQUE, document text NOT NULL DEFAULT '{}', created_at_us bigint NOT
  NULL, changed_at_us bigint NOT NULL, method text NOT NULL DEFAULT '', reason text NOT NULL DEFAULT '', call bigint
  NOT NULL DEFAULT 1, tries bigint NOT NULL DEFAULT 0, retry_at_us bigint NOT NULL DEFAULT 0, version bigint NOT NULL
  DEFAULT 1, declines bigint NOT NULL DEFAULT 0, failure text NOT NULL DEFAULT '', event_id text NOT NULL DEFAULT '',
  account text NOT NULL DEFAULT '', paid_with text NOT NULL DEFAULT '', agreed_at_us bigint NOT NULL DEFAULT 0,
  offered text NOT NULL DEFAULT '', fee_minor bigint NOT NULL DEFAULT 0, transfer_to text NOT NULL DEFAULT '',
  reminded_at_us bigint NOT NULL DEFAULT 0, UNIQUE (booking_id, attempt) );

CREATE UNIQUE INDEX one_live_payment_per_booking ON payments (booking_id) WHERE payment_state NOT IN ('voided',
  'declined', 'lapsed');

CREATE INDEX payments_by_ref ON payments (provider_ref);

CREATE INDEX payments_due ON payments (retry_at_us) WHERE retry_at_us > 0;

CREATE TABLE phone_codes ( fan text PRIMARY KEY, phone text NOT NULL, digest text NOT NULL, tries bigint NOT NULL,
  ends_at_us bigint NOT NULL );

CREATE TABLE pictures ( hash text PRIMARY KEY, organiser_id text NOT NULL, body text NOT NULL, created_at_us bigint
  NOT NULL , check_at_us bigint NOT NULL DEFAULT 0);

CREATE INDEX pictures_to_check ON pictures (check_at_us) WHERE check_at_us > 0;

CREATE TABLE plans ( hash text PRIMARY KEY, name text NOT NULL, seat_count bigint NOT NULL, document text NOT NULL,
  created_at_us bigint NOT NULL );

CREATE TABLE platform_keys (name text PRIMARY KEY, sealed text NOT NULL, changed_at_us bigint NOT NULL);

CREATE TABLE presales ( event_id text PRIMARY KEY, opens_at_us bigint NOT NULL, closes_at_us bigint NOT NULL, codes
  bigint NOT NULL, draw_order text NOT NULL CHECK (draw_order IN ('lottery', 'first_come')), lane text NOT NULL, seed
  text NOT NULL, beacon text NOT NULL, batches text NOT NULL, last_rank text NOT NULL, presale_state text NOT NULL
  CHECK (presale_state IN ('open', 'drawing', 'drawn')), created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL
  );

CREATE INDEX presales_drawing ON presales (event_id) WHERE presale_state = 'drawing';

CREATE TABLE price_tiers ( event_id text NOT NULL, key text NOT NULL, name text NOT NULL, price_minor bigint NOT NULL,
  currency text NOT NULL, PRIMARY KEY (event_id, key) );

CREATE TABLE provider_notes ( provider text NOT NULL, ref text NOT NULL, name text NOT NULL, account text NOT NULL
  DEFAULT '', their_ref text NOT NULL DEFAULT '', body text NOT NULL, at_us bigint NOT NULL, PRIMARY KEY (provider,
  ref, name) );

CREATE INDEX provider_notes_by_their_ref ON provider_notes (provider, their_ref) WHERE their_ref <> '';

CREATE INDEX provider_objects_made ON provider_notes (provider, account, at_us, ref) WHERE name = 'made';

CREATE TABLE push_subscriptions ( endpoint text PRIMARY KEY, fan text NOT NULL, document text NOT NULL, created_at_us
  bigint NOT NULL );

CREATE INDEX push_subscriptions_of_fan ON push_subscriptions (fan);

CREATE TRIGGER queue_audit_no_delete BEFORE DELETE ON queue_audit BEGIN SELECT RAISE(ABORT, 'queue_audit is
  append-only'); END;

CREATE TRIGGER queue_audit_no_update BEFORE UPDATE ON queue_audit BEGIN SELECT RAISE(ABORT, 'queue_audit is
  append-only'); END;

CREATE TABLE queue_audit ( number integer PRIMARY KEY AUTOINCREMENT, event_id text NOT NULL, place bigint NOT NULL,
  fan text NOT NULL, act text NOT NULL, at_us bigint NOT NULL );

CREATE INDEX queue_audit_of_event ON queue_audit (event_id, number);

CREATE TABLE recovery_codes (staff_id text NOT NULL, code_hash text NOT NULL, PRIMARY KEY (staff_id, code_hash));

CREATE TABLE refunds ( id text PRIMARY KEY, booking_id text NOT NULL, payment_id text NOT NULL, provider_ref text NOT
  NULL DEFAULT '', refund_state text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL, seats text NOT
  NULL, reason text NOT NULL DEFAULT '', idempotency_key text NOT NULL UNIQUE, created_at_us bigint NOT NULL,
  changed_at_us bigint NOT NULL , number bigint NOT NULL DEFAULT 1, fee_minor bigint NOT NULL DEFAULT 0, call bigint
  NOT NULL DEFAULT 1, tries bigint NOT NULL DEFAULT 0, retry_at_us bigint NOT NULL DEFAULT 0, version bigint NOT NULL
  DEFAULT 1, failure text NOT NULL DEFAULT '', event_id text NOT NULL DEFAULT '', refund_lines text NOT NULL DEFAULT
  '');

CREATE INDEX refunds_due ON refunds (retry_at_us) WHERE retry_at_us > 0;

CREATE INDEX refunds_failed ON refunds (booking_id) WHERE refund_state = 'failed';

CREATE INDEX refunds_of_booking ON refunds (booking_id);

CREATE TABLE report_mails ( staff_id text NOT NULL, event_id text NOT NULL, frequency text NOT NULL CHECK (frequency
  IN ('daily', 'weekly')), locale text NOT NULL, next_at_us bigint NOT NULL, created_at_us bigint NOT NULL, PRIMARY
  KEY (staff_id, event_id) );

CREATE INDEX report_mails_by_time ON report_mails (next_at_us);

CREATE TABLE requests ( name text PRIMARY KEY, asked text NOT NULL, status bigint NOT NULL, kind text NOT NULL,
  headers text NOT NULL, body text NOT NULL, created_at_us bigint NOT NULL, lease_until_us bigint NOT NULL );

CREATE INDEX requests_by_age ON requests (created_at_us);

CREATE TABLE returns ( id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, fan text NOT NULL, fence
  bigint NOT NULL, seat_index bigint NOT NULL, price_minor bigint NOT NULL, currency text NOT NULL, return_state text
  NOT NULL CHECK (return_state IN ('giving', 'listed', 'resold', 'refunded', 'void')), resold_booking_id text NOT NULL
  DEFAULT '', created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, UNIQUE (booking_id, seat_index) );

CREATE INDEX returns_in_work ON returns (return_state, changed_at_us) WHERE return_state IN ('giving', 'listed',
  'resold');

CREATE INDEX returns_of_event ON returns (event_id, id) WHERE return_state IN ('giving', 'listed', 'resold');

CREATE TABLE sale_signups ( id text PRIMARY KEY, event_id text NOT NULL, purpose text NOT NULL CHECK (purpose IN
  ('notice', 'presale')), email text NOT NULL, locale text NOT NULL, signup_state text NOT NULL CHECK (signup_state IN
  ('asked', 'confirmed', 'sent', 'chosen', 'passed_over')), code_number bigint NOT NULL, created_at_us bigint NOT
  NULL, confirmed_at_us bigint NOT NULL, changed_at_us bigint NOT NULL );

CREATE INDEX sale_signups_asked ON sale_signups (created_at_us) WHERE signup_state = 'asked';

CREATE INDEX sale_signups_of_address ON sale_signups (email);

CREATE UNIQUE INDEX sale_signups_once ON sale_signups (event_id, purpose, email);

CREATE INDEX sale_signups_waiting ON sale_signups (purpose, event_id, id) WHERE signup_state = 'confirmed';

CREATE TABLE scans ( number integer PRIMARY KEY AUTOINCREMENT, id text NOT NULL UNIQUE, event_id text NOT NULL,
  ticket_id text NOT NULL, gate text NOT NULL, at_us bigint NOT NULL , way text NOT NULL DEFAULT 'in');

CREATE INDEX scans_of_event ON scans (event_id, ticket_id);

CREATE INDEX scans_of_ticket ON scans (ticket_id);

CREATE TABLE seats ( plan_hash text NOT NULL, seat_index bigint NOT NULL, seat_id text NOT NULL, tier text NOT NULL,
  flags bigint NOT NULL, PRIMARY KEY (plan_hash, seat_index), UNIQUE (plan_hash, seat_id) );

CREATE TABLE seller_history ( organiser_id text NOT NULL, since_us bigint NOT NULL, name text NOT NULL, address text
  NOT NULL, tax_id text NOT NULL, tax_basis_points bigint NOT NULL, PRIMARY KEY (organiser_id, since_us) );

CREATE TABLE sellers ( organiser_id text PRIMARY KEY, name text NOT NULL, address text NOT NULL, tax_id text NOT NULL,
  tax_basis_points integer NOT NULL CHECK (tax_basis_points BETWEEN 0 AND 5000), changed_at_us bigint NOT NULL ,
  invoice_prefix text NOT NULL DEFAULT '', fees text NOT NULL DEFAULT '', contact_email text NOT NULL DEFAULT '');

CREATE TABLE served_versions (version text PRIMARY KEY);

CREATE TABLE sessions ( id text PRIMARY KEY, secret_hash text NOT NULL UNIQUE, kind text NOT NULL CHECK (kind IN
  ('fan', 'guest', 'staff')), subject text NOT NULL, stage text NOT NULL CHECK (stage IN ('full', 'totp', 'enrol')),
  created_at_us bigint NOT NULL, seen_at_us bigint NOT NULL, ends_at_us bigint NOT NULL, idle_us bigint NOT NULL,
  agent text NOT NULL );

CREATE INDEX sessions_by_end ON sessions (ends_at_us);

CREATE INDEX sessions_of_subject ON sessions (subject, created_at_us);

CREATE TABLE show_dates (event_id text PRIMARY KEY, show_id text NOT NULL, starts_at_us bigint NOT NULL);

CREATE INDEX show_dates_in_order ON show_dates (show_id, starts_at_us);

CREATE TABLE staff ( id text PRIMARY KEY, organiser_id text NOT NULL, email text NOT NULL, name text NOT NULL, role
  text NOT NULL CHECK (role IN ('owner', 'manager', 'box_office', 'door', 'read_only')), password_hash text NOT NULL,
  totp_sealed text NOT NULL, totp_step bigint NOT NULL, created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL );

CREATE UNIQUE INDEX one_account_per_address ON staff (email);

CREATE INDEX staff_of_organiser ON staff (organiser_id, id);

CREATE TABLE tax_rate_history ( event_id text NOT NULL, since_us bigint NOT NULL, tax_basis_points bigint NOT NULL,
  PRIMARY KEY (event_id, since_us) );

CREATE TABLE ticket_transfers ( id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, seat_index
  bigint NOT NULL, ticket_id text NOT NULL, fan text NOT NULL, email text NOT NULL, locale text NOT NULL,
  transfer_state text NOT NULL CHECK (transfer_state IN ('sent', 'accepted', 'withdrawn')), created_at_us bigint NOT
  NULL, expires_at_us bigint NOT NULL, from_transfer text NOT NULL, new_ticket_id text NOT NULL, name text NOT NULL,
  changed_at_us bigint NOT NULL );

CREATE UNIQUE INDEX one_transfer_per_ticket ON ticket_transfers (ticket_id) WHERE transfer_state = 'sent';

CREATE INDEX ticket_transfers_of_address ON ticket_transfers (email);

CREATE INDEX ticket_transfers_of_booking ON ticket_transfers (booking_id);

CREATE TABLE tickets ( id text PRIMARY KEY, booking_id text NOT NULL, event_id text NOT NULL, seat_index bigint NOT
  NULL, ticket_state text NOT NULL, issued_at_us bigint NOT NULL, changed_at_us bigint NOT NULL, scanned_at_us bigint,
  code text NOT NULL DEFAULT '', transfer_id text NOT NULL DEFAULT '', left_at_us bigint, UNIQUE (booking_id,
  seat_index) );

CREATE UNIQUE INDEX one_valid_ticket_per_seat ON tickets (event_id, seat_index) WHERE ticket_state = 'valid';

CREATE INDEX tickets_revoked ON tickets (event_id, changed_at_us, id) WHERE ticket_state = 'revoked';

CREATE TABLE use_counters (counter text PRIMARY KEY, taken bigint NOT NULL);

CREATE TABLE venues ( id text PRIMARY KEY, name text NOT NULL, plan_hash text NOT NULL, city text NOT NULL, country
  text NOT NULL, time_zone text NOT NULL, changed_at_us bigint NOT NULL , organiser_id text NOT NULL DEFAULT
  'org_default');

CREATE INDEX venues_of_organiser ON venues (organiser_id, id);

CREATE TABLE waitlist ( number integer PRIMARY KEY AUTOINCREMENT, id text NOT NULL UNIQUE, event_id text NOT NULL, fan
  text NOT NULL, section text NOT NULL DEFAULT '', seat_count bigint NOT NULL, entry_state text NOT NULL,
  created_at_us bigint NOT NULL, changed_at_us bigint NOT NULL , sections text NOT NULL DEFAULT '', split_ok bigint
  NOT NULL DEFAULT 0, rank bigint NOT NULL DEFAULT 0, offers_made bigint NOT NULL DEFAULT 0, lapses bigint NOT NULL
  DEFAULT 0);

CREATE UNIQUE INDEX one_entry_per_fan ON waitlist (event_id, fan) WHERE entry_state IN ('waiting', 'offered');

CREATE UNIQUE INDEX one_waiting_entry_per_fan ON waitlist (event_id, section, fan) WHERE entry_state = 'waiting';

CREATE INDEX waitlist_in_line ON waitlist (event_id, rank, number) WHERE entry_state = 'waiting';

CREATE INDEX waitlist_of_fan ON waitlist (fan);

CREATE TABLE waitlist_rules ( event_id text PRIMARY KEY, wait_order text NOT NULL CHECK (wait_order IN ('fifo',
  'lottery')), seed text NOT NULL, seed_hash text NOT NULL, created_at_us bigint NOT NULL );

CREATE TABLE wallet_keys ( organiser_id text NOT NULL, wallet text NOT NULL, account text NOT NULL, holder text NOT
  NULL, expires_at_us bigint NOT NULL, sealed text NOT NULL, changed_at_us bigint NOT NULL, PRIMARY KEY (organiser_id,
  wallet) );

CREATE TABLE webhook_endpoints ( id text PRIMARY KEY, organiser text NOT NULL, event_id text NOT NULL, url text NOT
  NULL, secret text NOT NULL, facts text NOT NULL, active smallint NOT NULL CHECK (active IN (0, 1)), changed_at_us
  bigint NOT NULL );

CREATE INDEX webhook_endpoints_of_event ON webhook_endpoints (event_id) WHERE active = 1;

CREATE INDEX webhook_endpoints_of_organiser ON webhook_endpoints (organiser, id);
