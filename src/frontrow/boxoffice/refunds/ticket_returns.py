"""Return to pool: a holder gives tickets back and is paid back when the seats are resold at face value.

Giving back is final. The order keeps a seat from having two living tickets and a holder from losing both ticket and
claim: the intent is written, the gates are told, then in one transaction the ledger's ticket is revoked and the seat is
free (for the waitlist or for everybody). When a later booking of it is confirmed the price is owed, and paid once.
Killed anywhere, the sweep goes on from what is written.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.held_seats import SeatUpdates
from frontrow.boxoffice.model.facts import BookingConfirmed, Fact
from frontrow.boxoffice.model.ticket_returns import NotReturnable, Return, ReturnState
from frontrow.boxoffice.ports.ledger import Catalogue, Ledger
from frontrow.boxoffice.ports.returns import ReturnsBook
from frontrow.boxoffice.waitlist.waitlist_service import SERVED
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError

AT_ONCE: Final = 200
TURNS: Final = 50  # of a sweep
EVERY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 30.0


class TicketRevoking(Protocol):
    """Whoever else must know of dead tickets before the seat is free (gates with a list of their own)."""

    async def revoke(self, booking_id: str, seats: Sequence[int], now_us: int) -> None:
        """When this has answered, the tickets of these seats are dead for good; repeating is harmless."""
        ...


class ReturnRefunding(Protocol):
    """What a return needs of the money."""

    async def refund_return(self, resold: Return, now_us: int) -> None:
        """Pay back `price_minor` to whoever paid the booking, exactly once: `resold.id` is the idempotency key.

        Answered: it is paid, or surely will be. Any FrontrowError: ask again later.
        """
        ...


class ResaleLedger(Ledger, Protocol):
    """What returns need of the ledger."""

    @property
    def returns(self) -> ReturnsBook: ...

    @property
    def catalogue(self) -> Catalogue: ...


class ResaleStats(msgspec.Struct):
    listed: int = 0
    resold: int = 0
    refunded: int = 0
    failures: int = 0


class Resale:
    """Takes tickets back and sees to it that their holders are paid."""

    def __init__(
        self,
        sales: Sales,
        ledger: ResaleLedger,
        held: SeatUpdates,
        money: ReturnRefunding,
        clock: Clock,
        *,
        tickets: TicketRevoking | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._sales, self._ledger, self._held, self._clock = sales, ledger, held, clock
        self._tickets, self._money = tickets, money
        self._every_s = every_s
        self._confirmed = False
        self._woken = asyncio.Event()
        self.stats = ResaleStats()

    async def give_back(self, booking_id: str, fan: str, fence: int, seats: Sequence[int] = ()) -> list[Return]:
        """Return these seats of a booking (none named: all). The tickets are dead when this answers."""
        now_us = self._clock()
        booking = await self._ledger.booking(booking_id)
        if booking is not None:
            event = await self._ledger.catalogue.event(booking.event_id)
            if event.status not in SERVED or now_us >= event.sale_ends_at_us:
                raise NotReturnable(f"{event.name} cannot be resold any more", booking=booking_id)
            seats = seats or booking.seats
        given = await self._ledger.returns.begin_return(booking_id, fan, fence, seats, now_us)
        await self._go_on(given, now_us)
        return [r for r in await self._ledger.returns.returns_of(booking_id) if r.seat_index in set(seats)]

    async def _go_on(self, given: Sequence[Return], now_us: int) -> None:
        """Revoke, then free, what is being given."""
        by_booking: defaultdict[str, list[Return]] = defaultdict(list)
        for one in given:
            if one.state is ReturnState.GIVING:
                by_booking[one.booking_id].append(one)
        for booking_id, ones in by_booking.items():
            seats = [one.seat_index for one in ones]
            if self._tickets is not None:
                await self._tickets.revoke(booking_id, seats, now_us)
            listed = await self._ledger.returns.list_return(booking_id, seats, now_us)
            self.stats.listed += len(listed)
            if listed and listed[0].event_id in set(self._sales):
                await self._held.freed(listed[0].event_id, [one.seat_index for one in listed], booking_id)

    def hear(self, fact: Fact) -> None:
        """A confirmed booking may be a resale; nothing depends on hearing of it."""
        if isinstance(fact, BookingConfirmed):
            self._confirmed = True
            self._woken.set()

    async def heard(self) -> None:
        """Look for resales if a booking was confirmed."""
        if self._confirmed:
            self._confirmed = False
            await self.sweep()

    async def run(self) -> None:
        """Sweep every few seconds until cancelled; when the ledger is away, less often, up to a bound."""
        pause_s = self._every_s
        while True:  # until cancelled
            try:
                await self.sweep()
                pause_s = self._every_s
            except FrontrowError:
                self.stats.failures += 1
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()

    async def sweep(self) -> None:
        """Go on with what a crash left behind, find resales, pay them back; in bounded steps."""
        await self._go_on(await self._ledger.returns.returns_in(ReturnState.GIVING, AT_ONCE), self._clock())
        for _ in range(TURNS):
            resold = await self._ledger.returns.settle_resales(self._clock(), AT_ONCE)
            self.stats.resold += len(resold)
            if len(resold) < AT_ONCE:
                break
        for _ in range(TURNS):
            owed = await self._ledger.returns.returns_in(ReturnState.RESOLD, AT_ONCE)
            paid = sum([await self._pay(one) for one in owed])
            if len(owed) < AT_ONCE or not paid:
                break

    async def _pay(self, owed: Return) -> bool:
        now_us = self._clock()
        try:
            await self._money.refund_return(owed, now_us)
        except FrontrowError:  # asked again in the next sweep, after the others
            self.stats.failures += 1
            await self._ledger.returns.turn_return(owed.id, ReturnState.RESOLD, ReturnState.RESOLD, now_us)
            return False
        paid = await self._ledger.returns.turn_return(owed.id, ReturnState.RESOLD, ReturnState.REFUNDED, now_us)
        self.stats.refunded += paid
        return True
