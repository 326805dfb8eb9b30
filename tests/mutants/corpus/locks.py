"""Locks: two servers read the same and both act on it. Each bug takes one lock away."""

from tests.mutants.mutant import Mutant

LEDGER = "boxoffice/adapters/ledger"
TESTS = "tests/boxoffice/adapters/ledger/test_lock_races.py"


def unlocked(guard: str, law: str, file: str, before: str, test: str) -> Mutant:
    """The statement without its lock, which is the last word of `before`."""
    after = before.rpartition(" ")[0]
    return Mutant(f"{guard} without its lock", law, f"{LEDGER}/{file}", before, after, (f"{TESTS}::{test}",), guard)


def shared(guard: str, law: str, file: str, before: str) -> Mutant:
    """Workers that lease the same work."""
    return unlocked(guard, law, file, before, f"test_work_is_leased_to_one_worker[{guard}]")


MUTANTS = (
    unlocked(
        "lock_use_counters",
        "a code is used at most as often as it may be",
        "pricing/choice_statements.sql",
        "ORDER BY c.counter :for_update",
        "test_a_code_is_not_used_more_often_than_it_may_be",
    ),
    Mutant(
        "servers that create the limiter's schema at once",
        "servers start at the same moment",
        "limits/stores/sql/postgresql.sql",
        "SELECT pg_advisory_xact_lock(5063714420861104);",
        "",
        ("tests/limits/test_sql_store.py::test_ten_servers_that_start_at_once_create_the_store_once[postgresql]",),
        "sql/postgresql.sql advisory",
    ),
    Mutant(
        "operators who create the table of rule books at once",
        "servers start at the same moment",
        "limits/stores/sql_rule_versions.py",
        "SELECT pg_advisory_xact_lock(5063714420861105);",
        "",
        ("tests/limits/test_rule_versions.py::test_operators_make_the_table_of_rule_books_one_after_the_other",),
        "stores/sql_rule_versions.py advisory",
    ),
    Mutant(
        "a file that is locked only when a transaction writes",
        "two servers write to one file, one after the other",
        f"{LEDGER}/engine/sqlite.py",
        'connection.execute("BEGIN IMMEDIATE")',
        'connection.execute("BEGIN")',
        (f"{TESTS}::test_two_servers_on_one_file_write_one_after_the_other",),
        "engine/sqlite.py begin immediate",
    ),
    Mutant(
        "a file that somebody changes while it is migrated",
        "servers migrate one after the other",
        f"{LEDGER}/migrate.py",
        'exec_driver_sql("BEGIN IMMEDIATE")',
        'exec_driver_sql("BEGIN")',
        (f"{TESTS}::test_a_migration_locks_the_file_before_it_reads_the_version",),
        "migrate.py begin immediate",
    ),
    unlocked(
        "lock_invoice_numbers",
        "invoice numbers have no gap and no number twice",
        "checkout/invoice_statements.sql",
        "WHERE n.organiser_id = :organiser_id :for_update",
        "test_two_invoices_at_once_get_two_numbers",
    ),
    unlocked(
        "lock_bookings",
        "a booking says which seats it has",
        "payments/payment_statements.sql",
        "ORDER BY b.id :for_update",
        "test_two_refunds_of_one_booking_count_one_after_the_other",
    ),
    unlocked(
        "lock_payments",
        "a booking is sold with the payment that takes its money",
        "payments/payment_statements.sql",
        "ORDER BY p.id :for_update",
        "test_a_sale_is_not_written_beside_a_payment_that_moved_on",
    ),
    unlocked(
        "lock_tickets",
        "a ticket is let in or refunded, never both",
        "tickets/ticket_statements.sql",
        "ORDER BY t.id :for_update",
        "test_a_ticket_is_let_in_or_refunded_and_never_both",
    ),
    unlocked(
        "lock_organiser",
        "an organiser has an owner",
        "people/people_statements.sql",
        "SELECT id FROM organisers WHERE id = :id :for_update",
        "test_two_owners_cannot_remove_each_other",
    ),
    unlocked(
        "locked_venue",
        "an event is found by the name of its venue",
        "events/event_index_statements.sql",
        "FROM venues AS v WHERE v.id = :id :for_update",
        "test_an_event_is_found_by_the_name_its_venue_has_now",
    ),
    unlocked(
        "locked_event",
        "an event sends a few messages per day",
        "events/event_index_statements.sql",
        "SELECT e.document FROM events AS e WHERE e.id = :id :for_update",
        "test_an_event_sends_no_more_messages_per_day_than_it_may",
    ),
    unlocked(
        "lock_buyer_message",
        "every buyer is written to once, and none is left out",
        "messages/buyer_message_statements.sql",
        "FROM buyer_messages AS m WHERE m.id = :id :for_update",
        "test_two_workers_write_to_different_buyers",
    ),
    unlocked(
        "dead_letter_by_number",
        "a dead letter is tried again once",
        "messages/dead_letter_statements.sql",
        "WHERE number = :number AND (kind = 'poison' OR delivery_state = 'given_up') :for_update",
        "test_a_dead_letter_is_tried_again_by_one",
    ),
    shared(
        "due_payments",
        "a payment has one driver",
        "payments/payment_statements.sql",
        "SELECT id, booking_id FROM payments WHERE retry_at_us > 0 AND retry_at_us <= :now_us\n"
        "ORDER BY retry_at_us LIMIT :limit :skip_locked",
    ),
    shared(
        "put_off_payments",
        "a payment is woken once",
        "payments/payment_statements.sql",
        "ORDER BY changed_at_us LIMIT :limit :skip_locked",
    ),
    shared(
        "due_refunds",
        "a refund is paid by one worker",
        "refunds/refund_statements.sql",
        "SELECT id, booking_id FROM refunds WHERE retry_at_us > 0 AND retry_at_us <= :now_us\n"
        "ORDER BY retry_at_us LIMIT :limit :skip_locked",
    ),
    shared(
        "due_facts",
        "a fact is published by one relay",
        "facts/outbox_statements.sql",
        "ORDER BY number LIMIT :limit :skip_locked",
    ),
    shared(
        "due_deliveries",
        "a mail is sent by one worker",
        "messages/message_statements.sql",
        "ORDER BY number :skip_locked",
    ),
    shared(
        "due_cancellations",
        "an event is cancelled by one worker",
        "organiser/organiser_statements.sql",
        "ORDER BY next_at_us LIMIT :limit :skip_locked",
    ),
    shared(
        "waiting_notices",
        "an address is told once that the sale begins",
        "presale/signup_statements.sql",
        "ORDER BY id LIMIT :limit :skip_locked",
    ),
    Mutant(
        "fans without their lock",
        "a fan has at most as many seats as the cap says",
        f"{LEDGER}/engine/postgres.py",
        'LOCK_FANS: Final = "; SELECT pg_advisory_xact_lock(key) FROM unnest(',
        'LOCK_FANS: Final = "; SELECT abs(key) FROM unnest(',
        (f"{TESTS}::test_a_fan_gets_no_more_seats_than_the_cap",),
        "engine/postgres.py advisory",
    ),
    Mutant(
        "migrations side by side",
        "a schema version runs once",
        f"{LEDGER}/migrate.py",
        'text("SELECT pg_advisory_lock(:key)")',
        'text("SELECT abs(:key)")',
        (f"{TESTS}::test_servers_migrate_one_after_the_other",),
        "migrate.py advisory",
    ),
    Mutant(
        "a room's tables made side by side",
        "servers that start at once find the tables of the room's audit and console",
        "shared/postgres_database.py",
        "SELECT pg_advisory_xact_lock({self._schema_lock})",
        "SELECT abs({self._schema_lock})",
        (
            f"{TESTS}::test_rooms_make_the_tables_of_their_audit_one_after_the_other",
            f"{TESTS}::test_consoles_make_their_tables_one_after_the_other",
        ),
        "shared/postgres_database.py advisory",
    ),
    Mutant(
        "an archive that deletes what changed",
        "nothing is deleted that the file does not have",
        f"{LEDGER}/archives.py",
        'lock = " FOR UPDATE" if isinstance(database, _Postgres) else ""',
        'lock = ""',
        (f"{TESTS}::test_a_booking_that_changes_while_it_is_archived_is_not_lost",),
        "archives.py for update",
    ),
)
