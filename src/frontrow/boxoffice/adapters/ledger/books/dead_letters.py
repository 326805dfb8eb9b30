"""What was put aside: facts a consumer could not handle and deliveries that were given up; listed, and tried again.

A fact is published again under its old number and forgotten in the inbox of the consumer that failed, and only there:
the others know it. A delivery waits again as if it were new. Either is one transaction.
"""

import functools
from typing import Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, Ran, Store
from frontrow.boxoffice.adapters.ledger.programs.bookings import Program
from frontrow.boxoffice.model.facts import Fact, decode_fact
from frontrow.boxoffice.model.messages import POISON, Aside, PoisonedFact
from frontrow.boxoffice.ports.queries import Query
from frontrow.core.errors import InvalidInput, NotFound

MAX_PAGE: Final = 1_000


class DeadLetterNotFound(NotFound):
    code = "aside_not_found"


class DeadLetterBook:
    """Lists dead letters and retries them."""

    def __init__(self, store: Store, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def asides(self, after: int = 0, limit: int = 100) -> list[Aside]:
        """In the order of their numbers, from after `after` on."""
        rows = await self._store.read(Query("asides_page", params=(after, max(1, min(limit, MAX_PAGE)))))
        return [Aside(*row) for row in rows]

    async def retry_aside(self, number: int, now_us: int) -> Aside:
        """Let it be tried again; `DeadLetterNotFound` when there is none of this number (any more)."""
        return cast(Aside, await self._line.submit(Ran(functools.partial(_retry, number, now_us), now_us)))


def _retry(number: int, now_us: int, facts: list[Fact]) -> Program[Aside | BaseException]:
    rows = yield Query("aside_by_number", params=(number,))
    if not rows:
        return DeadLetterNotFound(f"nothing is put aside under {number}", number=number)
    aside = Aside(*rows[0])
    if aside.kind != POISON:
        yield Query("deliver_again", [(number, now_us)])
        return aside
    try:
        kept = msgspec.json.decode(aside.body, type=PoisonedFact)
        fact = decode_fact(kept.fact)
    except msgspec.DecodeError as error:
        return InvalidInput(f"{number} cannot be read as a fact by this version: {error}", param="number")
    yield Query("drop_deliveries", [(number,)])  # the same fact may be put aside again
    yield Query("forget_inbox", [(aside.lane, str(kept.number))])
    row = (kept.number, type(fact).__name__, kept.fact, fact.event_id, fact.booking_id, fact.at_us)
    yield Query("publish_again", [row])
    return aside
