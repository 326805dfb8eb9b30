"""Turns a claim into a hold. Each step runs as a callback of the previous one, so an attempt costs no task.

The claim store answers with a refusal, which updates the seat cache, or with a claim. A claim goes to the ledger in the
same turn of the event loop, and the ledger's answer makes the hold. When the ledger refuses, the claim is released
before the fan gets the refusal. A caller may stop waiting at any time: a claim won after that is released; a hold that
the ledger has written stands.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from frontrow.boxoffice.holds.background_tasks import BackgroundTasks
from frontrow.boxoffice.holds.events_on_sale import Sale
from frontrow.boxoffice.holds.held_seats import HeldSeats
from frontrow.boxoffice.model.claims import ClaimedSeats, ClaimRefused
from frontrow.boxoffice.model.hold_values import Hold, HoldStats, ShopPass
from frontrow.boxoffice.model.holds import IdempotencyMismatch, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.model.prices import Quote, decode_lines, encode_lines
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.errors import FrontrowError, Unavailable

HoldResult: TypeAlias = Hold | SeatsTaken
NO_PRICE: Final = Quote((), (), 0, "")


class AttemptRunner:
    """Runs attempts from the claim to the ledger and keeps those that are under way."""

    def __init__(
        self,
        claims: SeatClaims,
        ledger: Ledger,
        held: HeldSeats,
        stats: HoldStats,
        background: BackgroundTasks,
        on_doubt: Callable[[str], None] | None = None,
    ) -> None:
        self.claims, self.ledger, self.stats, self.background = claims, ledger, stats, background
        self.under_way: set[_Attempt] = set()
        self._held = held
        self._on_doubt = on_doubt  # called when the claim store is lost or disagrees with the ledger

    def run_from_claim(
        self,
        claimed: "asyncio.Future[ClaimedSeats | ClaimRefused]",
        sale: Sale,
        shop_pass: ShopPass,
        booking_id: str,
        now_us: int,
        key: str | None,
        request: str,
    ) -> "asyncio.Future[HoldResult]":
        """The future result of an attempt whose claim is queued."""
        attempt = _Attempt(self, sale, shop_pass, booking_id, now_us, key, request, claimed)
        self.under_way.add(attempt)
        claimed.add_done_callback(attempt.on_claim)
        return attempt.result

    def run_from_seats(
        self,
        seats: tuple[int, ...],
        sale: Sale,
        shop_pass: ShopPass,
        booking_id: str,
        now_us: int,
        key: str | None,
        request: str,
    ) -> "asyncio.Future[HoldResult]":
        """The future result of an attempt whose seats are already claimed."""
        attempt = _Attempt(self, sale, shop_pass, booking_id, now_us, key, request, None)
        self.under_way.add(attempt)
        attempt.place_in_ledger(seats)
        return attempt.result

    def report_doubt(self, event_id: str) -> None:
        """Have claim recovery check the claim store of this event."""
        if self._on_doubt is not None:
            self._on_doubt(event_id)

    def finish_placed(self, sale: Sale, placed: PlacedHold, quote: Quote, now_us: int) -> Hold:
        """Build the fan's view of a placed hold; count it and update the seat cache and the map."""
        self.stats.won += 1
        self.stats.seats_won += len(placed.seats)
        if placed.repeated:  # its seats or its end may differ from what was claimed now
            sale.seats.mark_taken(placed.seats, placed.fan, placed.expires_at_us, now_us)
        for ended in placed.ended:
            sale.seats.mark_free(seat for seat in ended.seats if seat not in placed.seats)
            self._held.notify_change(sale.event.id, ended.seats)
        self._held.notify_change(sale.event.id, placed.seats)
        ids = sale.plan.seat_ids
        amount_minor, lines = quote.total_minor, quote.lines
        if placed.repeated:
            amount_minor, lines = placed.amount_minor, decode_lines(placed.price_lines)
        return Hold(
            placed.booking_id,
            placed.event_id,
            placed.fan,
            tuple([ids[seat] for seat in placed.seats]),
            placed.seats,
            placed.fence,
            placed.expires_at_us,
            amount_minor,
            quote.currency,
            placed.repeated,
            lines,
        )

    async def release_refused(
        self, sale: Sale, booking_id: str, seats: Sequence[int], error: FrontrowError, now_us: int
    ) -> None:
        """Release a claim that the ledger refused, except for seats that this booking already has."""
        if isinstance(error, IdempotencyMismatch):
            booking = await self.ledger.booking(booking_id)
            own = booking.seats if booking is not None and booking.live(now_us) else ()
            seats = [seat for seat in seats if seat not in own]
        await self.claims.release(sale.event.id, seats, booking_id)
        if isinstance(error, SeatsTaken):  # the claim store granted a seat that is not free
            self.report_doubt(sale.event.id)

    async def aclose(self) -> None:
        """Wait for attempts, audits and releases that are under way."""
        while self.under_way or self.background.running:  # bounded by the timeouts of the stores
            waiting = [attempt.waits_for for attempt in self.under_way if attempt.waits_for is not None]
            await asyncio.gather(*waiting, *self.background.running, return_exceptions=True)
            await asyncio.sleep(0)


class _Attempt:
    """One attempt. `waits_for` is the store's answer it needs next; `result` is what the caller waits for."""

    __slots__ = (
        "booking_id",
        "key",
        "now_us",
        "quote",
        "request",
        "result",
        "runner",
        "sale",
        "seats",
        "shop_pass",
        "waits_for",
    )

    def __init__(
        self,
        runner: AttemptRunner,
        sale: Sale,
        shop_pass: ShopPass,
        booking_id: str,
        now_us: int,
        key: str | None,
        request: str,
        waits_for: "asyncio.Future[Any] | None",
    ) -> None:
        self.runner, self.sale, self.shop_pass, self.booking_id = runner, sale, shop_pass, booking_id
        self.now_us, self.key, self.request, self.waits_for = now_us, key, request, waits_for
        self.seats: tuple[int, ...] = ()
        self.quote = NO_PRICE
        self.result: asyncio.Future[HoldResult] = asyncio.get_running_loop().create_future()

    def on_claim(self, claimed: "asyncio.Future[ClaimedSeats | ClaimRefused]") -> None:
        """The claim store has answered."""
        runner = self.runner
        error = asyncio.CancelledError() if claimed.cancelled() else claimed.exception()
        if error is not None:
            if isinstance(error, Unavailable):
                runner.stats.unavailable += 1
                runner.report_doubt(self.sale.event.id)
            self._finish(error)
            return
        answer = claimed.result()
        if isinstance(answer, ClaimRefused):
            runner.stats.refused_by_claims += 1
            self.sale.seats.mark_claimed(answer.taken, self.now_us)
            self._finish(self.sale.refusal_for([seat.seat for seat in answer.taken]))
        elif self.result.done():  # the caller has stopped waiting
            runner.background.spawn(runner.claims.release(self.sale.event.id, answer.seats, self.booking_id))
            self._finish(None)
        else:
            self.place_in_ledger(answer.seats)

    def place_in_ledger(self, seats: tuple[int, ...]) -> None:
        """Place the hold of claimed seats. From now on this server refuses the seats to others, as the store does."""
        sale, event = self.sale, self.sale.event
        self.seats = seats
        sale.seats.mark_taken(seats, self.shop_pass.fan, self.now_us + sale.hold_us, self.now_us)
        self.quote = quote = sale.quote(seats)
        new = NewHold(
            self.booking_id,
            event.id,
            self.shop_pass.fan,
            seats,
            self.now_us,
            self.now_us + sale.hold_us,
            quote.total_minor,
            event.currency,
            quote.seat_totals_minor,
            event.max_per_person,
            self.shop_pass.id,
            self.key,
            self.request,
            encode_lines(quote.lines),
        )
        try:
            self.waits_for = placed = self.runner.ledger.place_hold_soon(new)
        except FrontrowError as error:
            self._release_and_refuse(error)
            return
        placed.add_done_callback(self.on_placed)

    def on_placed(self, answer: "asyncio.Future[PlacedHold]") -> None:
        """The ledger has answered."""
        runner = self.runner
        error = asyncio.CancelledError() if answer.cancelled() else answer.exception()
        if error is None:
            placed = answer.result()
            if placed.seats != self.seats:  # a repeated request for the best seats: the first answer stands
                extra = [seat for seat in self.seats if seat not in placed.seats]
                runner.background.spawn(runner.claims.release(self.sale.event.id, extra, self.booking_id))
            self._finish(runner.finish_placed(self.sale, placed, self.quote, self.now_us))
        elif isinstance(error, Unavailable):  # it may be written: the claim stays, and a repeated request finds both
            runner.stats.unavailable += 1
            self._finish(error)
        elif isinstance(error, FrontrowError):
            self._release_and_refuse(error)
        else:
            self._finish(error)

    def _release_and_refuse(self, error: FrontrowError) -> None:
        """The ledger refused: release the claim, then tell the fan why."""
        runner = self.runner
        runner.stats.refused_by_ledger += 1
        refusal: Any = self.sale.new_refusal(error.seats) if isinstance(error, SeatsTaken) else error
        release = runner.release_refused(self.sale, self.booking_id, self.seats, error, self.now_us)
        self.waits_for = None
        runner.background.spawn(release, lambda: self._on_released(refusal))

    def _on_released(self, refusal: Any) -> None:
        self.sale.seats.mark_free(self.seats)  # the next attempt asks the claim store
        self._finish(refusal)

    def _finish(self, outcome: "HoldResult | BaseException | None") -> None:
        self.runner.under_way.discard(self)
        if self.result.done() or outcome is None:
            return
        if isinstance(outcome, asyncio.CancelledError):
            self.result.cancel()
        elif isinstance(outcome, Hold | SeatsTaken):
            self.result.set_result(outcome)
        else:
            self.result.set_exception(outcome)
