"""Adaptive limits: as many at once as can be served without a queue."""

from tests.mutants.mutant import Mutant

TESTS = "tests/limits/test_adaptive_limit.py"
LIMIT = "limits/adaptive/limit.py"

MUTANTS = (
    Mutant(
        "a slot of a cancelled caller is lost",
        "cancellation at every await leaks no slot",
        LIMIT,
        "        if slot is not None:\n            self.release(slot, Ended.IGNORED)\n",
        "",
        (f"{TESTS}::test_o7_a_slot_given_to_a_caller_that_is_cancelled_in_that_moment_goes_on",),
    ),
    Mutant(
        "a slot that is given back twice",
        "a limit is never exceeded",
        LIMIT,
        "            if not slot.is_held or slot.life != self._life:",
        "            if slot.life != self._life:",
        (f"{TESTS}::test_o7_a_slot_that_is_given_back_twice_is_given_back_once",),
    ),
    Mutant(
        "a slot that goes to who came first",
        "a free slot goes to the highest class",
        LIMIT,
        "        for caller in self._waiting.newest_first():\n",
        "        for caller in list(self._waiting.newest_first())[::-1]:\n",
        (f"{TESTS}::test_o7_a_free_slot_goes_to_the_highest_class_and_in_it_to_the_newest",),
    ),
    Mutant(
        "drops that do not shrink the limit",
        "drops shrink the limit",
        "limits/adaptive/controllers.py",
        "        if sample.drop_share > DROPS_MATTER:\n            kept =",
        "        if sample.drop_share > 1:\n            kept =",
        (f"{TESTS}::test_o7_drops_shrink_the_limit_and_a_mistake_of_the_caller_does_not",),
    ),
    Mutant(
        "a partition without its guarantee",
        "a partition gets its guaranteed share",
        LIMIT,
        "        return self._in_partition[partition] + 1 <= guaranteed\n",
        "        return False\n",
        (f"{TESTS}::test_o7_a_partition_gets_its_guaranteed_share_when_others_have_filled_the_limit",),
    ),
)
