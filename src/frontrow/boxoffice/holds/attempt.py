"""The fast form of `plain_attempt.py`: the stores call an attempt with their answers. It costs one future and no task.

That saves a third of the CPU of a hold (25 us instead of 39 us; the plain module says how that was measured). The plain
module is the specification. Read it first: it has the same steps, in order. Here they are callbacks:

| step of the plain module | here |
|---|---|
| 1. claim | `AttemptRunner.run_from_claim`; its error: `_Attempt._on_claim_error` |
| 2. refuse | `_Attempt._on_claim`, with a `ClaimRefused` |
| 3. give up | `_Attempt._on_claim`, where `result` is done |
| 4. place | `_Attempt.place_in_ledger`, then `_on_placed` or `_on_ledger_error` |
| 5. release | `_Attempt._release_and_refuse`, then `_on_released` |

Following has no step there, because it only saves calls. While the claim of a single seat is under way, attempts of
other fans for that seat wait for its answer instead of calling the store (`add_follower`, `follow`): whatever the
answer is, the seat is taken.
"""

import asyncio
from typing import Any, Final

from frontrow.boxoffice.holds.background_tasks import BackgroundTasks
from frontrow.boxoffice.holds.events_on_sale import Sale
from frontrow.boxoffice.holds.held_seats import HeldSeats, new_hold
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import Hold, HoldResult, HoldStats, PlacedHold, SeatsTaken, ShopPass
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.pricing.model.prices import Quote
from frontrow.core.errors import FrontrowError, Unavailable

NO_PRICE: Final = Quote((), (), 0, "")
NO_SEAT: Final = -1
MAX_FOLLOWERS: Final = 1_000  # of one claim; further attempts call the claim store
NO_FOLLOWERS: "Final[list[_Attempt]]" = []  # shared; never added to


class AttemptRunner:
    """Runs attempts from the claim to the ledger and keeps those that are under way."""

    def __init__(
        self,
        claims: SeatClaims,
        ledger: Ledger,
        held: HeldSeats,
        stats: HoldStats,
        background: BackgroundTasks,
    ) -> None:
        self.claims, self.ledger, self.held, self.stats, self.background = claims, ledger, held, stats, background
        self.under_way: set[_Attempt] = set()
        self.claiming: dict[tuple[str, int], _Attempt] = {}  # by event and seat: the claim that others follow
        self._none_under_way = asyncio.Event()

    def run_from_claim(
        self, claim: SeatClaim, sale: Sale, shop_pass: ShopPass, now_us: int, key: str | None, request: str
    ) -> "asyncio.Future[HoldResult]":
        """The future result of an attempt. Its claim is queued, or follows one for the same seat."""
        attempt = _Attempt(self, sale, shop_pass, claim.booking_id, now_us, key, request)
        if len(claim.seats) == 1:
            place = (claim.event_id, claim.seats[0])
            first = self.claiming.get(place)
            if first is None:
                self.claims.claim_into(claim, now_us, attempt)
                self.claiming[place] = attempt
                attempt.claims_seat = claim.seats[0]
            elif not first.add_follower(attempt):
                self.claims.claim_into(claim, now_us, attempt)
        else:
            self.claims.claim_into(claim, now_us, attempt)
        self.under_way.add(attempt)
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
        attempt = _Attempt(self, sale, shop_pass, booking_id, now_us, key, request)
        self.under_way.add(attempt)
        attempt.place_in_ledger(seats)
        return attempt.result

    def end(self, attempt: "_Attempt") -> None:
        """Remove an attempt that has ended."""
        self.under_way.discard(attempt)
        if not self.under_way:
            self._none_under_way.set()

    async def aclose(self) -> None:
        """Wait for attempts, audits and releases that are under way."""
        while self.under_way or self.background.running:  # bounded by the timeouts of the stores
            if self.background.running:
                await asyncio.wait(self.background.running)
            elif self.under_way:
                self._none_under_way.clear()
                await self._none_under_way.wait()
            await asyncio.sleep(0)


class _Attempt:
    """One attempt: where the claim store and then the ledger put their answers (`shared.coalescer.ResultSlot`).

    `result` is what the caller waits for. `claims_seat` is the seat whose claim others may follow.
    """

    __slots__ = (
        "_followers",
        "booking_id",
        "claims_seat",
        "key",
        "now_us",
        "quote",
        "request",
        "result",
        "runner",
        "sale",
        "seats",
        "shop_pass",
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
    ) -> None:
        self.runner, self.sale, self.shop_pass, self.booking_id = runner, sale, shop_pass, booking_id
        self.now_us, self.key, self.request = now_us, key, request
        self.seats: tuple[int, ...] = ()  # once they are claimed
        self.claims_seat = NO_SEAT
        self._followers: list[_Attempt] = NO_FOLLOWERS
        self.quote = NO_PRICE
        self.result: asyncio.Future[HoldResult] = asyncio.get_running_loop().create_future()

    def add_follower(self, attempt: "_Attempt") -> bool:
        """Let another fan's attempt for the same seat wait for the answer to this claim, unless too many do."""
        if attempt.shop_pass.fan == self.shop_pass.fan or len(self._followers) >= MAX_FOLLOWERS:
            return False
        if self._followers is NO_FOLLOWERS:
            self._followers = []
        self._followers.append(attempt)
        return True

    def done(self) -> bool:
        """A queued request is carried out even if the caller stops waiting."""
        return False

    def set_result(self, answer: ClaimedSeats | ClaimRefused | PlacedHold) -> None:
        """Continue with a store's answer."""
        try:
            if isinstance(answer, PlacedHold):
                self._on_placed(answer)
            else:
                self._on_claim(answer)
        except Exception as error:  # a slot must not raise: the answers of others come after this one
            self._finish(error)

    def set_exception(self, error: BaseException) -> None:
        """Continue after a store failed or refused."""
        if self.seats:
            self._on_ledger_error(error)
        else:
            self._on_claim_error(error)

    def cancel(self) -> bool:
        self.set_exception(asyncio.CancelledError())
        return True

    def _on_claim(self, answer: ClaimedSeats | ClaimRefused) -> None:
        runner, sale = self.runner, self.sale
        followers = self._take_followers()
        if isinstance(answer, ClaimRefused):
            runner.stats.refused_by_claims += 1
            sale.seats.mark_claimed(answer.taken, self.now_us)
            self._finish(sale.refusal_for([seat.seat for seat in answer.taken]))
            owner = answer.taken[0].fan if answer.taken else ""
        else:
            owner = self.shop_pass.fan
            if self.result.done():  # the caller has stopped waiting
                runner.background.spawn(runner.claims.release(sale.event.id, answer.seats, self.booking_id))
                self._finish(None)
            else:
                self.place_in_ledger(answer.seats)
        for one in followers:
            one.follow(owner, self.claims_seat)

    def follow(self, owner: str, seat: int) -> None:
        """Continue after the claim that this attempt followed: the seat belongs to `owner`."""
        if owner and owner != self.shop_pass.fan:
            self.runner.stats.refused_locally += 1
            self._finish(self.sale.refusal_for((seat,)))
            return
        claim = SeatClaim(
            self.sale.event.id, (seat,), self.shop_pass.fan, self.booking_id, self.now_us + self.sale.hold_us
        )
        try:
            self.runner.claims.claim_into(claim, self.now_us, self)
        except FrontrowError as error:
            self._finish(error)

    def _on_claim_error(self, error: BaseException) -> None:
        followers = self._take_followers()
        if isinstance(error, Unavailable):
            self.runner.stats.unavailable += 1
            self.runner.held.report_doubt(self.sale.event.id)
        self._finish(error)
        for one in followers:
            one._on_claim_error(error)

    def _take_followers(self) -> "list[_Attempt]":
        """The attempts that follow this claim. None can follow any more."""
        if self.claims_seat == NO_SEAT:
            return NO_FOLLOWERS
        self.runner.claiming.pop((self.sale.event.id, self.claims_seat), None)
        followers, self._followers = self._followers, NO_FOLLOWERS
        return followers

    def place_in_ledger(self, seats: tuple[int, ...]) -> None:
        """Place the hold of claimed seats. From now on this server refuses the seats to others, as the store does."""
        sale = self.sale
        self.seats = seats
        sale.seats.mark_taken(seats, self.shop_pass.fan, self.now_us + sale.hold_us, self.now_us)
        self.quote = quote = sale.quote(seats)
        new = new_hold(sale, self.shop_pass, self.booking_id, seats, quote, self.now_us, self.key, self.request)
        try:
            self.runner.ledger.place_hold_into(new, self)
        except FrontrowError as error:
            self._on_ledger_error(error)

    def _on_placed(self, placed: PlacedHold) -> None:
        runner = self.runner
        if placed.seats != self.seats:  # a repeated request for the best seats: the first answer counts
            extra = [seat for seat in self.seats if seat not in placed.seats]
            runner.background.spawn(runner.claims.release(self.sale.event.id, extra, self.booking_id))
        runner.stats.won += 1
        runner.stats.seats_won += len(placed.seats)
        self._finish(runner.held.show_placed(self.sale, placed, self.quote, self.shop_pass.id, self.now_us))

    def _on_ledger_error(self, error: BaseException) -> None:
        if isinstance(error, Unavailable):  # it may be written: the claim stays, and a repeated request finds both
            self.runner.stats.unavailable += 1
            self._finish(error)
        elif isinstance(error, FrontrowError):
            self._release_and_refuse(error)
        else:
            self._finish(error)

    def _release_and_refuse(self, error: FrontrowError) -> None:
        """Release the claim after the ledger refused, then pass the refusal on."""
        runner = self.runner
        runner.stats.refused_by_ledger += 1
        refusal: Any = self.sale.new_refusal(error.seats) if isinstance(error, SeatsTaken) else error
        release = runner.held.release_refused(self.sale, self.booking_id, self.seats, error, self.now_us)
        runner.background.spawn(release, lambda: self._on_released(refusal))

    def _on_released(self, refusal: Any) -> None:
        self.sale.seats.mark_free(self.seats)  # the next attempt calls the claim store
        self._finish(refusal)

    def _finish(self, outcome: "HoldResult | BaseException | None") -> None:
        self.runner.end(self)
        if self.result.done() or outcome is None:
            return
        if isinstance(outcome, asyncio.CancelledError):
            self.result.cancel()
        elif isinstance(outcome, Hold | SeatsTaken):
            self.result.set_result(outcome)
        else:
            self.result.set_exception(outcome)
