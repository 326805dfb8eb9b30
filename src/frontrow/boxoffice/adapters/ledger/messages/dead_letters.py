"""Dead letters: facts that a consumer could not handle, and deliveries that were given up. Lists and retries them.

To retry a fact, it is published again under its old number and removed from the inbox of the consumer that failed; the
other consumers have handled it and skip it. To retry a delivery, it is queued again as if it were new. Either is one
transaction.
"""

import functools
from typing import Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.facts.model import Fact, decode_fact
from frontrow.boxoffice.messages.model.messages import UNHANDLED_FACT, DeadLetter, UnhandledFact
from frontrow.core.errors import InvalidInput, NotFound

MAX_PAGE: Final = 1_000


class DeadLetterNotFound(NotFound):
    code = "dead_letter_not_found"


class DeadLetterBook:
    """Lists dead letters and retries them."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def page(self, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Dead letters ordered by number, from after `after` on."""
        rows = await self._store.read(Query("dead_letters_page", params=(after, max(1, min(limit, MAX_PAGE)))))
        return [DeadLetter(*row) for row in rows]

    async def retry(self, number: int, now_us: int) -> DeadLetter:
        """Retry a dead letter. `DeadLetterNotFound` when there is none with this number."""
        return cast(DeadLetter, await self._line.submit(RunProgram(functools.partial(_retry, number, now_us), now_us)))


def _retry(number: int, now_us: int, facts: list[Fact]) -> Program[DeadLetter | BaseException]:
    rows = yield Query("dead_letter_by_number", params=(number,))
    if not rows:
        return DeadLetterNotFound(f"there is no dead letter {number}", number=number)
    letter = DeadLetter(*rows[0])
    if letter.kind != UNHANDLED_FACT:
        yield Query("deliver_again", [(number, now_us)])
        return letter
    try:
        kept = msgspec.json.decode(letter.body, type=UnhandledFact)
        fact = decode_fact(kept.fact)
    except msgspec.DecodeError as error:
        return InvalidInput(f"{number} cannot be read as a fact by this version: {error}", param="number")
    yield Query("drop_deliveries", [(number,)])  # the same fact may become a dead letter again
    yield Query("forget_inbox", [(letter.queue, str(kept.number))])
    row = (kept.number, type(fact).__name__, kept.fact, fact.event_id, fact.booking_id, fact.at_us)
    yield Query("publish_again", [row])
    return letter
