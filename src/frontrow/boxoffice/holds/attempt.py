"""From a claim to a hold, without a task an attempt: each step is a callback of the answer before it.

The claim store's answer is either a refusal, which this server learns from, or a claim, which goes to the ledger in the
same turn of the event loop; the ledger's answer makes the hold. A claim that the ledger refused is given back before
the fan hears of it. Whoever stopped waiting changes nothing: a claim that is won after that is given back, a hold that
the ledger wrote stands.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.held_seats import Watcher
from frontrow.boxoffice.holds.local_refusal import Refusing, quietly
from frontrow.boxoffice.model.claims import Claimed, ClaimRefused
from frontrow.boxoffice.model.hold_values import Hold, ShopPass
from frontrow.boxoffice.model.holds import IdempotencyMismatch, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, Unavailable

Answer: TypeAlias = Hold | SeatsTaken


class Recording(Refusing):
    """Takes claims to the ledger."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        on_change: Watcher | None = None,
        on_doubt: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(sales, claims, ledger, clock, on_change)
        self._on_doubt = on_doubt  # the claim store is lost or disagrees with the ledger: see to it
        self._flying: set[_Attempt] = set()

    def follow(
        self, claimed: "asyncio.Future[Claimed | ClaimRefused]", sale: Sale, shop_pass: ShopPass, booking_id: str,
        now_us: int, key: str | None, request: str,
    ) -> "asyncio.Future[Answer]":  # fmt: skip
        """The future answer to an attempt whose claim is in line."""
        attempt = _Attempt(self, sale, shop_pass, booking_id, now_us, key, request, claimed)
        self._flying.add(attempt)
        claimed.add_done_callback(attempt.claimed)
        return attempt.answer

    def record(
        self, sale: Sale, shop_pass: ShopPass, seats: tuple[int, ...], booking_id: str, now_us: int, key: str | None,
        request: str,
    ) -> "asyncio.Future[Answer]":  # fmt: skip
        """The future answer to an attempt whose seats are claimed."""
        attempt = _Attempt(self, sale, shop_pass, booking_id, now_us, key, request, None)
        self._flying.add(attempt)
        attempt.record(seats)
        return attempt.answer

    def won(self, sale: Sale, placed: PlacedHold, amount_minor: int, now_us: int) -> Hold:
        """The ledger's word as the fan sees it; this server and the map take note."""
        self.stats.won += 1
        self.stats.seats_won += len(placed.seats)
        if placed.repeated:  # other seats or another end than were claimed, perhaps
            sale.seats.took(placed.seats, placed.fan, placed.expires_at_us, now_us)
        for ended in placed.ended:
            sale.seats.freed(seat for seat in ended.seats if seat not in placed.seats)
            self._changed(sale.event.id, ended.seats)
        self._changed(sale.event.id, placed.seats)
        ids = sale.plan.seat_ids
        return Hold(
            placed.booking_id, placed.event_id, placed.fan, tuple([ids[seat] for seat in placed.seats]), placed.seats,
            placed.fence, placed.expires_at_us, amount_minor, sale.event.currency, placed.repeated,
        )  # fmt: skip

    async def give_back(
        self, sale: Sale, booking_id: str, seats: Sequence[int], error: FrontrowError, now_us: int
    ) -> None:
        """Release a claim the ledger refused, except seats that this very booking already has."""
        if isinstance(error, IdempotencyMismatch):
            booking = await self._ledger.booking(booking_id)
            own = booking.seats if booking is not None and booking.live(now_us) else ()
            seats = [seat for seat in seats if seat not in own]
        await self._claims.release(sale.event.id, seats, booking_id)
        if isinstance(error, SeatsTaken):  # the claim store let somebody through to a seat that is not free
            self._doubt(sale.event.id)

    def _doubt(self, event_id: str) -> None:
        if self._on_doubt is not None:
            self._on_doubt(event_id)

    async def aclose(self) -> None:
        """Wait for attempts, audits and give-backs on their way."""
        while self._flying or self._background:  # bounded by the stores' timeouts
            stages = [attempt.stage for attempt in self._flying if attempt.stage is not None]
            await asyncio.gather(*stages, *self._background, return_exceptions=True)
            await asyncio.sleep(0)


class _Attempt:
    """One attempt on its way; `stage` is the answer it waits for, `answer` the one it owes."""

    __slots__ = ("amount_minor", "answer", "booking_id", "key", "now_us", "request", "sale", "seats", "service",
                 "shop_pass", "stage")  # fmt: skip

    def __init__(
        self, service: Recording, sale: Sale, shop_pass: ShopPass, booking_id: str, now_us: int, key: str | None,
        request: str, stage: "asyncio.Future[Any] | None",
    ) -> None:  # fmt: skip
        self.service, self.sale, self.shop_pass, self.booking_id = service, sale, shop_pass, booking_id
        self.now_us, self.key, self.request, self.stage = now_us, key, request, stage
        self.seats: tuple[int, ...] = ()
        self.amount_minor = 0
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def claimed(self, told: "asyncio.Future[Claimed | ClaimRefused]") -> None:
        """The claim store has answered."""
        service = self.service
        error = asyncio.CancelledError() if told.cancelled() else told.exception()
        if error is not None:
            if isinstance(error, Unavailable):
                service.stats.unavailable += 1
                service._doubt(self.sale.event.id)
            self._end(error)
            return
        answer = told.result()
        if isinstance(answer, ClaimRefused):
            service.stats.refused_by_claims += 1
            self.sale.seats.learn(answer.taken, self.now_us)
            self._end(service._answer(self.sale, [seat.seat for seat in answer.taken]))
        elif self.answer.done():  # nobody waits any more
            service._spawn(service._claims.release(self.sale.event.id, answer.seats, self.booking_id))
            self._end(None)
        else:
            self.record(answer.seats)

    def record(self, seats: tuple[int, ...]) -> None:
        """Have the ledger say so, or give the claim back. From now on others are refused here, as at the store."""
        sale, event = self.sale, self.sale.event
        self.seats = seats
        sale.seats.took(seats, self.shop_pass.fan, self.now_us + sale.hold_us, self.now_us)
        prices = sale.prices_minor(seats)
        self.amount_minor = sum(prices)
        new = NewHold(
            self.booking_id, event.id, self.shop_pass.fan, seats, self.now_us, self.now_us + sale.hold_us,
            self.amount_minor, event.currency, prices, event.max_per_person, self.shop_pass.id, self.key, self.request,
        )  # fmt: skip
        try:
            self.stage = self.service._ledger.place_hold_soon(new)
        except FrontrowError as error:
            self._refused(error)
            return
        self.stage.add_done_callback(self.recorded)

    def recorded(self, told: "asyncio.Future[PlacedHold]") -> None:
        """The ledger has answered."""
        service = self.service
        error = asyncio.CancelledError() if told.cancelled() else told.exception()
        if error is None:
            placed = told.result()
            if placed.seats != self.seats:  # a repeated wish for the best: the first answer stands
                extra = [seat for seat in self.seats if seat not in placed.seats]
                service._spawn(service._claims.release(self.sale.event.id, extra, self.booking_id))
            self._end(service.won(self.sale, placed, self.amount_minor, self.now_us))
        elif isinstance(error, Unavailable):  # it may have been written: the claim stays, asking again finds both
            service.stats.unavailable += 1
            self._end(error)
        elif isinstance(error, FrontrowError):
            self._refused(error)
        else:
            self._end(error)

    def _refused(self, error: FrontrowError) -> None:
        """The ledger said no: the claim goes back, then the fan hears why."""
        service = self.service
        service.stats.refused_by_ledger += 1
        told: Any = service._taken(self.sale, error.seats) if isinstance(error, SeatsTaken) else error
        work = service.give_back(self.sale, self.booking_id, self.seats, error, self.now_us)
        self.stage = None
        service._spawn(quietly(work, lambda: self._given_back(told)))

    def _given_back(self, told: Any) -> None:
        self.sale.seats.freed(self.seats)  # whoever asks next hears the claim store's word
        self._end(told)

    def _end(self, told: "Answer | BaseException | None") -> None:
        self.service._flying.discard(self)
        if self.answer.done() or told is None:
            return
        if isinstance(told, asyncio.CancelledError):
            self.answer.cancel()
        elif isinstance(told, Hold | SeatsTaken):
            self.answer.set_result(told)
        else:
            self.answer.set_exception(told)
