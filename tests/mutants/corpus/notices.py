"""Notices shortly before a turn: each who asked is told once."""

from tests.mutants.mutant import Mutant

TESTS = "tests/waitingroom/notices/test_turn_notices.py"

MUTANTS = (
    Mutant(
        "two servers send the same notice",
        "each who asked is told once",
        "waitingroom/notices/sql_notices.py",
        "    \" WHERE id = ? AND state = 'waiting' AND tries = ? AND next_at_us = ?\"\n",
        "    \" WHERE id = ? AND state = 'waiting' AND tries >= ? AND next_at_us >= ?\"\n",
        (f"{TESTS}::test_each_who_asked_is_told_once_by_whichever_server",),
    ),
    Mutant(
        "a notice is tried without end",
        "retries are bounded",
        "waitingroom/notices/turn_notices.py",
        "if done.final or notice.tries + 1 >= MOST_TRIES:",
        "if done.final:",
        (f"{TESTS}::test_what_fails_is_tried_again_within_bounds_and_after_a_dead_server",),
    ),
    Mutant(
        "an address that is kept after its notice",
        "an address is erased once it is of no use",
        "waitingroom/notices/sql_notices.py",
        "SET state = ?, address = '' WHERE id = ?",
        "SET state = ? WHERE id = ?",
        (f"{TESTS}::test_each_who_asked_is_told_once_by_whichever_server",),
    ),
    Mutant(
        "an address that anybody can flood",
        "notices to one address are bounded",
        "waitingroom/notices/turn_notices.py",
        "if await self._book.count(event, address_hash(event, address)) >= MOST_PER_ADDRESS:",
        "if await self._book.count(event, address) >= MOST_PER_ADDRESS:",
        (f"{TESTS}::test_who_asks_for_another_or_too_often_is_refused",),
    ),
    Mutant(
        "a paused room calls people",
        "nobody is called while nobody is let in",
        "waitingroom/notices/model.py",
        "    if phase is not Phase.OPEN:\n        return Nearness.FAR\n",
        "",
        (f"{TESTS}::test_a_turn_is_near_five_minutes_before_at_the_rate_of_now",),
    ),
)
