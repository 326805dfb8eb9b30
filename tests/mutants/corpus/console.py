"""The console of a room served alone, and the notices shortly before a turn."""

from tests.mutants.mutant import Mutant

ACCESS = "waitingroom/console/access.py"
TESTS = "tests/waitingroom/console"

MUTANTS = (
    Mutant(
        "two owners remove each other",
        "the console has an owner",
        ACCESS,
        "                stays,\n                *await self._sessions_of(owner_id),\n",
        "                *await self._sessions_of(owner_id),\n",
        (f"{TESTS}/test_access.py::test_two_owners_who_remove_each_other_leave_one",),
    ),
    Mutant(
        "a new password leaves old sessions open",
        "a new password ends every session",
        ACCESS,
        "                *await self._sessions_of(owner.id),\n",
        "",
        (f"{TESTS}/test_access.py::test_a_new_password_ends_every_session",),
    ),
    Mutant(
        "a session without its last hour",
        "a session ends after twelve hours",
        ACCESS,
        "session = OwnerSession(owner.id, now_us, now_us, now_us + WHOLE_US, IDLE_US)",
        "session = OwnerSession(owner.id, now_us, now_us, now_us + 10 * WHOLE_US, IDLE_US)",
        (f"{TESTS}/test_access.py::test_a_session_ends_idle_at_its_end_and_by_signing_out",),
    ),
    Mutant(
        "a link for anybody's address",
        "an invitation is for its address",
        ACCESS,
        "account = link.email or checked_email(email)",
        "account = checked_email(email) if email else link.email",
        (f"{TESTS}/test_access.py::test_roles_are_read_on_every_request_and_the_last_owner_stays",),
    ),
    Mutant(
        "a revision that is written over",
        "of fifty who change the same thing one does",
        "waitingroom/console/sql_book.py",
        '    " WHERE kind = ? AND id = ? AND revision = ?"\n)\nDELETE',
        '    " WHERE kind = ? AND id = ? AND revision >= ?"\n)\nDELETE',
        (f"{TESTS}/test_console_book.py::test_what_somebody_else_has_changed_is_not_written_over",),
    ),
    Mutant(
        "a key that was revoked here is good elsewhere",
        "a revoked key is refused everywhere",
        ACCESS,
        "for one in await self.keys() if not one.revoked_at_us}",
        "for one in await self.keys()}",
        (f"{TESTS}/test_access.py::test_a_key_does_what_it_is_for_until_it_is_revoked_everywhere",),
    ),
)
