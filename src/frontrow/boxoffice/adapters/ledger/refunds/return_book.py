"""The ledger's returns: seats given back to the pool, and what became of them.

The contract is in `refunds/ports/returns.py`.
"""

import functools
from collections.abc import Sequence
from typing import Final, cast

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.refunds import return_transactions as programs
from frontrow.boxoffice.refunds.model.ticket_returns import Return, ReturnState

MAX_PER_CALL: Final = 1_000


class SqlReturnsBook:
    """Seats given back and what became of them."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def begin_return(
        self, booking_id: str, fan: str, fence: int, seats: Sequence[int], now_us: int
    ) -> list[Return]:
        run = functools.partial(programs.begin_return, booking_id, fan, fence, tuple(seats), now_us)
        return cast(list[Return], await self._line.submit(RunProgram(run, now_us)))

    async def list_return(self, booking_id: str, seats: Sequence[int], now_us: int) -> list[Return]:
        run = functools.partial(programs.list_returned, booking_id, tuple(seats), now_us)
        return cast(list[Return], await self._line.submit(RunProgram(run, now_us)))

    async def mark_resales(self, now_us: int, limit: int) -> list[Return]:
        run = functools.partial(programs.find_resold, now_us, max(1, min(limit, MAX_PER_CALL)))
        return cast(list[Return], await self._line.submit(RunProgram(run, now_us)))

    async def returns_of_event(self, event_id: str, after: str, limit: int) -> list[Return]:
        """Unsettled returns of an event, ordered by id."""
        params = (event_id, after, max(1, min(limit, MAX_PER_CALL)))
        return [programs.return_of(row) for row in await self._store.read(Query("returns_of_event", params=params))]

    async def turn_return(self, given_id: str, was: ReturnState, to: ReturnState, now_us: int) -> bool:
        return cast(
            bool,
            await self._line.submit(
                RunProgram(functools.partial(programs.change_state, given_id, was, to, now_us), now_us)
            ),
        )

    async def returns_of(self, booking_id: str) -> list[Return]:
        return [
            programs.return_of(row) for row in await self._store.read(Query("returns_of_booking", params=(booking_id,)))
        ]

    async def returns_in(self, state: ReturnState, limit: int) -> list[Return]:
        params = (state.value, max(1, min(limit, MAX_PER_CALL)))
        return [programs.return_of(row) for row in await self._store.read(Query("returns_in_state", params=params))]
