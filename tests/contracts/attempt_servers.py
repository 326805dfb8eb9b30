"""Two servers of one box office for the contract of attempts, and stores that a check can hold up or break.

A step of an attempt is named by the store's call and by which side of it: `claim asked` is before the claim store did
anything, `claim answered` after it did and before the attempt hears of it. So an error at `claim answered` is a store
that did its work and whose answer was lost.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.claim_recovery import WRITE_GRACE_US, Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import Hold, HoldResult, NewHold, PlacedHold, SeatsTaken, ShopPass
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.clock import US_PER_S
from frontrow.shared.coalescer import ResultSlot, move_result
from frontrow.testing.clock import ManualClock
from tests.boxoffice.shop import EVENT, NOW, shop_event, shop_plan

Attempts = type[AttemptRunner] | type[PlainAttempts]
BEFORE_THE_LEDGER = ("claim asked", "claim answered")
AT_THE_LEDGER = ("hold asked", "hold answered")
AT_THE_RELEASE = ("release asked", "release answered")


class Steps:
    """Where a check stops or breaks the calls of attempts."""

    def __init__(self) -> None:
        self.errors: dict[str, BaseException] = {}
        self._closed: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}

    def close(self, step: str) -> None:
        """Hold up whatever comes to this step, until `open`."""
        self._closed[step], self._reached[step] = asyncio.Event(), asyncio.Event()

    async def reached(self, step: str) -> None:
        """Wait until a call is held up at this step."""
        async with asyncio.timeout(10):
            await self._reached[step].wait()

    def open(self, step: str) -> None:
        self._closed.pop(step).set()

    def watches(self, call: str) -> bool:
        return any(step.startswith(call) for step in (*self.errors, *self._closed))

    async def at(self, step: str) -> None:
        closed = self._closed.get(step)
        if closed is not None:
            self._reached[step].set()
            await closed.wait()
        if step in self.errors:
            raise self.errors[step]


class SteppedClaims:
    """A claim store whose claims and releases pass the steps. Everything else goes to the store."""

    def __init__(self, store: SeatClaims, steps: Steps) -> None:
        self._store, self._steps = store, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, claim: SeatClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        await self._steps.at("claim asked")
        answer = await self._store.claim(claim, now_us)
        await self._steps.at("claim answered")
        return answer

    def claim_into(self, claim: SeatClaim, now_us: int, slot: ResultSlot) -> None:
        if self._steps.watches("claim"):
            asyncio.ensure_future(self.claim(claim, now_us)).add_done_callback(lambda task: move_result(task, slot))
        else:
            self._store.claim_into(claim, now_us, slot)

    async def release(self, event_id: str, seats: Sequence[int], booking_id: str) -> int:
        await self._steps.at("release asked")
        freed = await self._store.release(event_id, seats, booking_id)
        await self._steps.at("release answered")
        return freed


class SteppedLedger:
    """A ledger whose holds pass the steps. Everything else goes to the ledger."""

    def __init__(self, ledger: SqlLedger, steps: Steps) -> None:
        self._ledger, self._steps = ledger, steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def place_hold(self, hold: NewHold) -> PlacedHold:
        await self._steps.at("hold asked")
        placed = await self._ledger.place_hold(hold)
        await self._steps.at("hold answered")
        return placed

    def place_hold_into(self, hold: NewHold, slot: ResultSlot) -> None:
        if self._steps.watches("hold"):
            asyncio.ensure_future(self.place_hold(hold)).add_done_callback(lambda task: move_result(task, slot))
        else:
            self._ledger.place_hold_into(hold, slot)


class AttemptServer:
    """One server: its sales and its hold service over the stores that all servers share."""

    def __init__(
        self, claims: SeatClaims, ledger: SqlLedger, clock: ManualClock, attempts: Attempts, **changes: Any
    ) -> None:
        self.claims, self.ledger, self.clock, self.steps = claims, ledger, clock, Steps()
        self.plan, self.sales = shop_plan(), Sales()
        self.sale = self.sales.open(shop_event(**changes), self.plan)
        self.changed: list[int] = []
        self.doubts: list[str] = []
        self.recovery = Recovery(self.sales, claims, ledger, clock)
        claims.learn(EVENT, self.plan)
        self.holds = HoldService(
            self.sales,
            SteppedClaims(claims, self.steps),
            SteppedLedger(ledger, self.steps),  # type: ignore[arg-type]
            clock,
            on_change=lambda _, seats: self.changed.extend(seats),
            on_doubt=self.doubts.append,
            attempts=attempts,
        )

    def shop_pass(self, fan: str) -> ShopPass:
        return ShopPass(EVENT, fan, self.clock() + 900 * US_PER_S, f"ps_{fan}")

    def ids(self, seats: Sequence[int]) -> list[str]:
        return [self.plan.seat_ids[seat] for seat in seats]

    def attempt(self, fan: str, *seats: int, key: str | None = None) -> "asyncio.Future[HoldResult]":
        """The future of an attempt that is not refused at once."""
        answer = self.holds.attempt(EVENT, self.shop_pass(fan), self.ids(seats), idempotency_key=key)
        assert isinstance(answer, asyncio.Future), answer
        return answer

    async def hold(self, fan: str, *seats: int, key: str | None = None) -> Hold:
        return await self.holds.place(EVENT, self.shop_pass(fan), self.ids(seats), idempotency_key=key)

    async def ended(self) -> None:
        """Wait until no attempt, release or write is under way."""
        async with asyncio.timeout(20):
            await self.holds.aclose()
            await self.ledger.line.aclose()
            await self.holds.aclose()

    async def claimed(self) -> dict[int, str]:
        """Which booking has which seat, as the claim store says."""
        return {seat: one.booking_id for seat, one in (await self.claims.states(EVENT, self.clock())).items()}

    async def written(self) -> dict[int, str]:
        """Which booking has which seat, as the ledger says."""
        return {seat.seat_index: seat.booking_id async for seat in self.ledger.active_seats(EVENT, self.clock())}

    async def stores_agree(self) -> dict[int, str]:
        """Wait for what is under way. The claim store then says what the ledger says, which is returned."""
        await self.ended()
        written = await self.written()
        assert await self.claimed() == written
        return written

    async def recover(self) -> None:
        """What claim recovery does once the writes that may be under way are too old to be."""
        self.clock.advance(us=WRITE_GRACE_US)
        assert await self.recovery.check(EVENT)
        await self.recovery.reconcile(EVENT)


class AttemptServers:
    """What a check works with: two servers on the same stores, and a way to lose the claim store."""

    def __init__(self, one: AttemptServer, two: AttemptServer, lose_claims: Callable[[], None]) -> None:
        self.one, self.two, self.lose_claims, self.clock = one, two, lose_claims, one.clock


@contextlib.asynccontextmanager
async def attempt_servers(
    claims: SeatClaims, ledger: SqlLedger, attempts: Attempts, lose_claims: Callable[[], None]
) -> AsyncIterator[AttemptServers]:
    """Two servers whose claim store is filled. A person may have 10 seats of the event."""
    clock = ManualClock(NOW)
    one, two = (AttemptServer(claims, ledger, clock, attempts) for _ in range(2))
    assert await one.recovery.check(EVENT)
    try:
        yield AttemptServers(one, two, lose_claims)
    finally:
        for server in (one, two):
            await server.ended()


def is_refused(answer: object) -> bool:
    """Whether a gathered answer is that the seats are taken, raised or as a value."""
    return isinstance(answer, SeatsTaken)
