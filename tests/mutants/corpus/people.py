"""People: who may sign in, and for how long."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a code that works twice",
        "a second factor works once",
        "boxoffice/adapters/ledger/people/people_statements.sql",
        "WHERE s.id = r.id AND s.totp_step < r.totp_step RETURNING",
        "WHERE s.id = r.id AND s.totp_step <= r.totp_step RETURNING",
        (
            "tests/boxoffice/people/test_people_services.py::test_a_member_signs_in_with_password_then_code_and_each_code_once",
        ),
    ),
    Mutant(
        "sessions that outlive a new password",
        "a new password ends every session",
        "boxoffice/people/sessions.py",
        ("        await self.end_all(session.subject)\n        return await self.start"),
        "        return await self.start",
        (
            "tests/boxoffice/people/test_people_services.py::test_the_second_factor_is_set_up_before_anything_else_and_recovery_codes_work_once",
        ),
    ),
    Mutant(
        "a full session without the second factor",
        "staff prove two factors",
        "boxoffice/people/staff_sign_in.py",
        "stage = Stage.TOTP if staff.totp_sealed else Stage.ENROL",
        "stage = Stage.FULL if staff.totp_sealed else Stage.ENROL",
        (
            "tests/boxoffice/people/test_people_services.py::test_a_member_signs_in_with_password_then_code_and_each_code_once",
        ),
    ),
    Mutant(
        "a password change over another one",
        "of two changes at once one wins",
        "boxoffice/adapters/ledger/people/people_statements.sql",
        "WHERE s.id = r.id AND s.password_hash = r.old_hash RETURNING s.id",
        "WHERE s.id = r.id RETURNING s.id",
        ("tests/boxoffice/people/test_people_book.py::test_people_book[sqlite-of_two_password_changes_one_wins]",),
    ),
    Mutant(
        "a magic link in any browser",
        "a link works in the browser that asked",
        "boxoffice/adapters/ledger/people/people_statements.sql",
        "WHERE m.secret_hash = r.secret_hash AND m.browser_hash = r.browser_hash AND",
        "WHERE m.secret_hash = r.secret_hash AND",
        ("tests/boxoffice/people/test_people_services.py::test_a_magic_link_works_once_in_its_browser_and_in_time",),
    ),
    Mutant(
        "a key that outlives its maker",
        "a key ends with its maker",
        "boxoffice/adapters/ledger/people/people_statements.sql",
        (
            "SELECT k.id, k.organiser_id, k.name, k.scopes, k.made_by, k.created_at_us, k.ends_at_us, k.used_at_us, s.role\n"
            "FROM api_keys AS k LEFT JOIN staff AS s ON s.id = k.made_by AND s.organiser_id = k.organiser_id\n"
            "WHERE k.secret_hash"
        ),
        (
            "SELECT k.id, k.organiser_id, k.name, k.scopes, k.made_by, k.created_at_us, k.ends_at_us, k.used_at_us, 'owner'\n"
            "FROM api_keys AS k\n"
            "WHERE k.secret_hash"
        ),
        (
            "tests/boxoffice/people/test_people_book.py::test_people_book[sqlite-an_api_key_can_do_what_its_maker_still_can]",
        ),
    ),
    Mutant(
        "somebody forgotten keeps their devices",
        "whoever asks to be forgotten is",
        "boxoffice/adapters/ledger/people/people_book.py",
        '        "drop_push",\n',
        "",
        ("tests/boxoffice/people/test_erasure.py::test_nothing_that_names_a_person_is_left_in_any_table",),
    ),
    Mutant(
        "a transfer still names who was forgotten",
        "whoever asks to be forgotten is",
        "boxoffice/adapters/ledger/people/people_book.py",
        '        yield Query("forget_transfers_to", [(email, now_us)])\n',
        "",
        ("tests/boxoffice/people/test_erasure.py::test_nothing_that_names_a_person_is_left_in_any_table",),
    ),
    Mutant(
        "the box office may change the team",
        "a role may do what was decided",
        "boxoffice/people/model/roles.py",
        '"codes:write", "figures:read", "door:scan"}',
        '"codes:write", "figures:read", "door:scan", "team:write"}',
        ("tests/security/test_authorisation_matrix.py::test_what_a_role_may_do_is_decided_here_too",),
    ),
)
