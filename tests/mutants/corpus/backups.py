"""Backups, archives and the audit log: what must not be lost, changed or left out."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a rewritten audit entry with a hash that fits",
        "whatever is changed in the audit log shows",
        "boxoffice/adapters/ledger/audit_chain.py",
        "    elif entry.prev_hash != before_hash:\n",
        "    elif before_seq < 0:\n",
        ("tests/boxoffice/adapters/ledger/test_audit.py::test_an_entry_rewritten_with_a_hash_that_fits_shows",),
    ),
    Mutant(
        "a rewritten last entry of the audit",
        "whatever is changed in the audit log shows",
        "boxoffice/adapters/ledger/audit_verification.py",
        "if hash_at.get((chain, seq)) != wanted:",
        "if (chain, seq) not in hash_at:",
        ("tests/boxoffice/adapters/ledger/test_audit.py::test_tampering_shows",),
    ),
    Mutant(
        "a backup over another one",
        "a backup is never overwritten",
        "boxoffice/adapters/ledger/backups.py",
        ("    if target.exists():\n        raise Refused"),
        ("    if not target.parent.exists():\n        raise Refused"),
        (
            "tests/boxoffice/adapters/ledger/test_backups.py::test_a_backup_never_overwrites_a_file_and_leaves_no_half_one",
        ),
    ),
    Mutant(
        "a restore over a ledger",
        "a ledger is replaced only by force",
        "boxoffice/adapters/ledger/backups.py",
        "        if not force and schema_version(url):",
        "        if force and not schema_version(url):",
        (
            "tests/boxoffice/adapters/ledger/test_backups.py::test_a_backup_taken_while_people_buy_is_whole_when_restored[sqlite]",
        ),
    ),
    Mutant(
        "a backup that everybody can read",
        "a backup is its owner's",
        "boxoffice/adapters/ledger/backups.py",
        "    target.chmod(0o600)\n",
        "",
        (
            "tests/boxoffice/adapters/ledger/test_backups.py::test_a_backup_taken_while_people_buy_is_whole_when_restored[sqlite]",
        ),
    ),
    Mutant(
        "a restore of an unknown schema",
        "a program runs only on a schema it knows",
        "boxoffice/adapters/ledger/backups.py",
        "    if version not in known_versions():",
        "    if not version:",
        ("tests/boxoffice/adapters/ledger/test_backups.py::test_a_backup_of_a_newer_program_is_refused",),
    ),
    Mutant(
        "a damaged copy that passes for a backup",
        "a backup is checked",
        "boxoffice/adapters/ledger/backups.py",
        '    if found != "ok":',
        "    if not found:",
        ("tests/boxoffice/adapters/ledger/test_backups.py::test_a_copy_that_is_damaged_is_no_backup",),
    ),
    Mutant(
        "a restore while servers use the ledger",
        "a ledger in use is not replaced",
        "boxoffice/adapters/ledger/backups.py",
        "    with use_alone(url):\n",
        "    if url:\n",
        ("tests/app/test_ledger_in_use.py::test_a_ledger_that_somebody_has_open_is_not_replaced[sqlite]",),
    ),
    Mutant(
        "an archive of an event with open refunds",
        "an event goes when its money is settled",
        "boxoffice/adapters/ledger/archives.py",
        ('    if found:\n        raise Refused(f"{event_id} stays'),
        ('    if len(found) > 99:\n        raise Refused(f"{event_id} stays'),
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_an_event_with_open_money_or_a_young_one_stays[sqlite]",
        ),
    ),
    Mutant(
        "an archive of a young event",
        "the provider may still say something about young payments",
        "boxoffice/adapters/ledger/archives.py",
        "    _check_age(over_at_us(event), now_us)\n",
        "",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_an_event_with_open_money_or_a_young_one_stays[sqlite]",
        ),
    ),
    Mutant(
        "an archive that was changed",
        "an archive is whole or refused",
        "boxoffice/adapters/ledger/archives.py",
        'end["sha256"] == seen.hexdigest() and ',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_a_file_that_was_changed_or_cut_off_is_refused_and_changed_rows_are_not_deleted[sqlite]",
        ),
    ),
    Mutant(
        "an archive deletes rows that changed",
        "nothing is deleted that the file does not have",
        "boxoffice/adapters/ledger/archives.py",
        "    if now != step:\n",
        "    if not now:\n",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_a_file_that_was_changed_or_cut_off_is_refused_and_changed_rows_are_not_deleted[sqlite]",
        ),
    ),
    Mutant(
        "an archive without the transfers",
        "an archive has every row of the event",
        "boxoffice/adapters/ledger/archives.py",
        '    "ticket_transfers": ("id",),\n',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_every_table_of_an_event_is_archived_or_stays_for_a_reason",
        ),
    ),
    Mutant(
        "an archive without the scans",
        "an archive has every row of the event",
        "boxoffice/adapters/ledger/archives.py",
        ' "scans": ("event_id", "id"),',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_every_table_of_an_event_is_archived_or_stays_for_a_reason",
        ),
    ),
    Mutant(
        "rows added since the file are forgotten",
        "nothing is left behind half",
        "boxoffice/adapters/ledger/archives.py",
        '            if await _page(database, table, event_id, ""):',
        '            if table == "" and await _page(database, table, event_id, ""):',
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_rows_that_were_added_after_the_file_was_written_are_not_forgotten[sqlite]",
        ),
    ),
    Mutant(
        "an archive in a foreign ledger",
        "an archive goes back where it came from",
        "boxoffice/adapters/ledger/archives.py",
        '        if not await database.fetch("SELECT 1 FROM events WHERE id = $1", archive.event_id):',
        "        if not archive.event_id:",
        (
            "tests/boxoffice/adapters/ledger/test_archives.py::test_a_file_goes_back_only_into_the_ledger_that_has_its_event[sqlite]",
        ),
    ),
    Mutant(
        "a file that does not wait for the disk",
        "a commit is on disk before it is answered",
        "boxoffice/adapters/ledger/engine/sqlite.py",
        '    "PRAGMA synchronous = FULL",',
        '    "PRAGMA synchronous = NORMAL",',
        ("tests/boxoffice/adapters/ledger/test_durability.py::test_every_connection_to_a_file_waits_for_the_disk",),
    ),
    Mutant(
        "a writer that does not wait for PostgreSQL's disk",
        "a commit is on disk before it is answered",
        "boxoffice/adapters/ledger/engine/postgres.py",
        '    "synchronous_commit": "on",\n',
        "",
        (
            "tests/boxoffice/adapters/ledger/test_durability.py::test_every_writer_waits_for_postgresql_even_if_its_database_does_not",
        ),
    ),
)
