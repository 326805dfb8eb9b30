"""The contract of the Ledger port as plain checks: run over SQLite and PostgreSQL, and over broken ledgers (canaries).

Every check gets a `Bench`: two ledgers opened on one store (as two servers would), an event of its own, and a time that
moves only when told. A check is a sentence; it fails by AssertionError or by an error the contract does not allow.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.core.errors import FrontrowError
from frontrow.testing.clock import ManualClock

Answer = TypeVar("Answer")
TEN_MINUTES_US = 600_000_000
CALLERS = 60
_numbers = itertools.count(1)


class Bench:
    """What a check works with."""

    def __init__(self, one: SqlLedger, two: SqlLedger) -> None:
        self.one, self.two = one, two
        self.clock = ManualClock()
        self.event = f"evt_{next(_numbers):04d}"

    @property
    def now_us(self) -> int:
        return self.clock.now_us

    def either(self, number: int) -> SqlLedger:
        """The ledgers in turn."""
        return self.one if number % 2 else self.two

    def wish(self, *seats: int, fan: str = "", booking: str = "", **more: Any) -> NewHold:
        number = next(_numbers)
        more.setdefault("now_us", self.now_us)
        more.setdefault("expires_at_us", self.now_us + TEN_MINUTES_US)
        return NewHold(booking or f"bkg_T{number:025d}", self.event, fan or f"fan_{number}", seats, **more)

    async def hold(self, *seats: int, **more: Any) -> PlacedHold:
        return await self.one.place_hold(self.wish(*seats, **more))

    async def paid(self, *seats: int, **more: Any) -> PlacedHold:
        """A hold that is being paid for."""
        hold = await self.hold(*seats, **more)
        await self.one.begin_payment(hold.booking_id, hold.fence, self.now_us)
        return hold

    async def seats(self, now_us: int | None = None) -> dict[int, tuple[str, str]]:
        """Active seats: index -> (state, booking)."""
        found = self.one.active_seats(self.event, self.now_us if now_us is None else now_us)
        return {seat.seat_index: (seat.state.value, seat.booking_id) async for seat in found}

    async def facts(self) -> list[Any]:
        """All facts of this event so far, in order; takes them out of the outbox."""
        claimed = await self.one.claim_facts(self.now_us, 1, 10_000)
        await self.one.facts_published([fact.number for fact in claimed], self.now_us)
        return [fact.fact for fact in claimed if fact.fact.event_id == self.event]


Check = Callable[[Bench], Coroutine[Any, Any, None]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Make a function part of the contract."""
    CHECKS.append(function)
    return function


async def outcomes(calls: Sequence[Awaitable[Answer]]) -> tuple[list[Answer], list[FrontrowError]]:
    """Run all at once; the answers and the refusals. Any other error is a failure of the ledger."""
    done = await asyncio.gather(*calls, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException) and not isinstance(one, FrontrowError):
            raise AssertionError(f"the contract knows no {one!r}") from one
    return (
        [one for one in done if not isinstance(one, BaseException)],
        [one for one in done if isinstance(one, FrontrowError)],
    )


async def refusal(call: Awaitable[Any], kind: type[Answer]) -> Answer:
    """The error of this kind that the call must raise."""
    try:
        answer = await call
    except FrontrowError as error:
        if isinstance(error, kind):
            return error
        raise AssertionError(f"expected {kind.__name__}, got {error!r}") from error
    raise AssertionError(f"expected {kind.__name__}, got {answer!r}")
