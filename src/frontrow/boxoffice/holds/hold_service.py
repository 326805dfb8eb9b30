"""Placing holds (B3, B4): check the pass, check the seats, refuse locally, claim, write to the ledger.

The order matters. An attempt that cannot succeed costs only a lookup in this server's memory. The claim store lets one
caller per seat through. The ledger decides: only its fence makes a hold. If it refuses, the claim is released. If its
answer is lost, the claim stays until the fan tries again, the hold expires, or claim recovery finds that the ledger has
no such booking.

With an Idempotency-Key the booking id is derived from the key, so a repeated request finds its own claim and its own
booking.

`HoldService` uses three collaborators: `LocalRefusals` (the seat cache), `AttemptRunner` (claim store to ledger; its
specification is `PlainAttempts`) and `held` (`HeldSeats`), which extends, releases, sells and frees held seats.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence

from frontrow.boxoffice.events.model.events import check_on_sale
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.background_tasks import BackgroundTasks
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.held_seats import HeldSeats, SeatChangeListener
from frontrow.boxoffice.holds.local_refusal import LocalRefusals
from frontrow.boxoffice.holds.model.bookings import Booking
from frontrow.boxoffice.holds.model.claims import BestClaim, ClaimedSeats, ClaimRefused, SeatClaim, check_name
from frontrow.boxoffice.holds.model.holds import Hold, HoldResult, HoldStats, NoSuchSeats, SeatsTaken, ShopPass
from frontrow.boxoffice.holds.model.requested_seats import LonelySeat, Wish, check_count
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.model.best_seats import best_available
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Overloaded, Unauthorised, Unavailable
from frontrow.shared.ids import ID_CHARS, Ids, encode32

BEST_TRIES = 8  # sections tried per wish when the seat cache proves out of date
MAX_KEY_CHARS = 200


class HoldService:
    """Places and changes holds on this server. `held` is responsible for what happens to them later."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        *,
        ids: Ids | None = None,
        on_change: SeatChangeListener | None = None,
        on_doubt: Callable[[str], None] | None = None,
        attempts: type[AttemptRunner] | type[PlainAttempts] = AttemptRunner,
    ) -> None:
        self._sales, self._claims, self._clock = sales, claims, clock
        self._ids = ids or Ids(clock)
        self.stats = HoldStats()
        background = BackgroundTasks()
        self.held = HeldSeats(sales, claims, ledger, clock, on_change, on_doubt)
        self._attempts = attempts(claims, ledger, self.held, self.stats, background)
        self._refusals = LocalRefusals(sales, claims, clock, self.stats, background)
        self.refusal = self._refusals.find  # bound once: the fast path calls it for every attempt

    def attempt(
        self,
        event_id: str,
        shop_pass: ShopPass,
        seat_ids: Sequence[str],
        *,
        idempotency_key: str | None = None,
        turn: int | None = None,
    ) -> "SeatsTaken | asyncio.Future[HoldResult]":
        """`place` without a task: a refusal at once, or the future of a hold or a refusal.

        Other errors are raised, here or by the future. Refusals are values that many callers share: do not raise them.
        """
        now_us = self._clock()
        sale = self._check_admission(event_id, shop_pass, now_us)
        seats = sale.resolve_seats(seat_ids)
        if sale.seats.any_taken_by_other(seats, shop_pass.fan, now_us):
            return self._refusals.refuse(sale, seats, shop_pass.fan, now_us)
        booking_id = self._make_booking_id(shop_pass, idempotency_key, turn)
        if sale.find_lonely(seats)[0]:
            return asyncio.ensure_future(
                self._check_lonely_and_claim(sale, shop_pass, seats, now_us, idempotency_key, booking_id)
            )
        return self._claim(sale, shop_pass, seats, now_us, idempotency_key, booking_id)

    async def place(
        self,
        event_id: str,
        shop_pass: ShopPass,
        seat_ids: Sequence[str],
        *,
        idempotency_key: str | None = None,
        turn: int | None = None,
    ) -> Hold:
        """Hold these seats, all or none. Of two requests for the same `turn` of a fan only one makes a hold."""
        attempt = self.attempt(event_id, shop_pass, seat_ids, idempotency_key=idempotency_key, turn=turn)
        result = attempt if isinstance(attempt, SeatsTaken) else await attempt
        if isinstance(result, SeatsTaken):
            raise self._sales.get(event_id).new_refusal(result.seats)
        return result

    async def place_best(
        self,
        event_id: str,
        shop_pass: ShopPass,
        wish: Wish,
        *,
        idempotency_key: str | None = None,
        turn: int | None = None,
    ) -> Hold:
        """Hold the best seats that fit the wish. The claim store chooses and claims them in one atomic step."""
        now_us = self._clock()
        sale = self._check_admission(event_id, shop_pass, now_us)
        check_count(sale.event, wish.count)
        masks = dict(sale.section_masks(wish))
        booking_id = self._make_booking_id(shop_pass, idempotency_key, turn)
        for _ in range(BEST_TRIES):
            sale.seats.expire_holds(now_us)
            choice = best_available(sale.layouts, sale.seats.states, list(masks.items()), wish.count, wish.worst)
            if choice is None:
                break
            claim = BestClaim(
                event_id,
                choice.section,
                masks[choice.section],
                wish.count,
                int(choice.grade),
                shop_pass.fan,
                booking_id,
                now_us + sale.hold_us,
            )
            claimed = await self._claim_best(claim, now_us)
            if isinstance(claimed, ClaimedSeats):
                request = repr(wish) if idempotency_key else ""
                result = await self._attempts.run_from_seats(
                    claimed.seats, sale, shop_pass, booking_id, now_us, idempotency_key, request
                )
                if isinstance(result, SeatsTaken):
                    raise sale.new_refusal(result.seats)
                return result
            section = sale.plan.section_range(choice.section)
            sale.seats.replace_states(section, {seat.seat: seat for seat in claimed.taken}, now_us)
        else:  # others were faster each time, and there are still seats
            raise Overloaded("these seats are going fast; try again", retry_after_s=1.0)
        self.stats.refused_by_claims += 1
        raise self._no_such_seats(sale, wish)

    def _no_such_seats(self, sale: Sale, wish: Wish) -> NoSuchSeats:
        text = f"no {wish.count} free seats match the request; ask for fewer seats or another section"
        return NoSuchSeats(text, event=sale.event.id)

    async def change(self, booking: Booking, shop_pass: ShopPass, seat_ids: Sequence[str]) -> Hold:
        """Give a live hold other seats: those in both choices are kept. If one is taken, the hold stays as it is."""
        now_us = self._clock()
        sale = self._check_admission(booking.event_id, shop_pass, now_us)
        seats = sale.resolve_seats(seat_ids)
        row_seats = sale.find_lonely(seats, booking.seats)[1]
        if row_seats:
            sale.seats.replace_states(row_seats, await self._claims.states(sale.event.id, now_us, row_seats), now_us)
            self._refuse_lonely(sale, sale.find_lonely(seats, booking.seats)[0])
        taken = await self._claim_for(sale, booking, seats, now_us)
        if taken:
            raise sale.new_refusal(taken)
        return await self.held.change(sale, booking, seats)

    async def change_best(self, booking: Booking, shop_pass: ShopPass, wish: Wish) -> Hold:
        """Give a live hold the best seats that fit the wish; its own count as free."""
        now_us = self._clock()
        sale = self._check_admission(booking.event_id, shop_pass, now_us)
        check_count(sale.event, wish.count)
        masks = sale.section_masks(wish)
        for _ in range(BEST_TRIES):
            sale.seats.expire_holds(now_us)
            states = bytearray(sale.seats.states)
            for seat in booking.seats:
                states[seat] = 0
            choice = best_available(sale.layouts, states, masks, wish.count, wish.worst)
            if choice is None:
                raise self._no_such_seats(sale, wish)
            if not await self._claim_for(sale, booking, choice.seats, now_us):
                return await self.held.change(sale, booking, sorted(choice.seats))
        raise Overloaded("these seats are going fast; try again", retry_after_s=1.0)

    async def _claim_for(self, sale: Sale, booking: Booking, seats: Sequence[int], now_us: int) -> list[int]:
        """Claim seats for a hold that exists. Returns those that others have; then nothing is claimed."""
        claim = SeatClaim(sale.event.id, tuple(sorted(seats)), booking.fan, booking.id, booking.hold_expires_at_us)
        answer = await self._claims.claim(claim, now_us)
        if not isinstance(answer, ClaimRefused):
            return []
        sale.seats.mark_claimed(answer.taken, now_us)
        return [seat.seat for seat in answer.taken]

    async def aclose(self) -> None:
        """Wait for attempts, audits and releases that are under way."""
        await self._attempts.aclose()

    def _check_admission(self, event_id: str, shop_pass: ShopPass | None, now_us: int) -> Sale:
        """The sale, if the pass is valid for it and the event is on sale."""
        if shop_pass is None or shop_pass.event_id != event_id:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
        if now_us >= shop_pass.expires_at_us:
            raise Unauthorised("the pass has ended; join the waiting room again", event=event_id)
        sale = self._sales.get(event_id)
        if not sale.sold_from_us <= now_us < sale.sold_until_us:
            check_on_sale(sale.event, now_us)  # raises the reason
        return sale

    def _make_booking_id(self, shop_pass: ShopPass, key: str | None, turn: int | None = None) -> str:
        if turn is not None:
            key = f"turn {turn} of {shop_pass.event_id}"
        if key is None:
            return self._ids.new("bkg")
        if not 1 <= len(key) <= MAX_KEY_CHARS:
            raise InvalidInput(f"an Idempotency-Key has 1 to {MAX_KEY_CHARS} characters", param="Idempotency-Key")
        scoped_key = f"{shop_pass.event_id}\n{check_name(shop_pass.fan, 'fan')}\n{key}".encode()
        number = int.from_bytes(hashlib.blake2b(scoped_key, digest_size=17).digest(), "big")
        return f"bkg_{encode32(number & ((1 << 130) - 1), ID_CHARS)}"

    def _claim(
        self, sale: Sale, shop_pass: ShopPass, seats: list[int], now_us: int, key: str | None, booking_id: str
    ) -> "asyncio.Future[HoldResult]":
        """Queue the claim and return the future result."""
        claim = SeatClaim(sale.event.id, tuple(seats), shop_pass.fan, booking_id, now_us + sale.hold_us)
        request = ",".join(map(str, seats)) if key else ""
        return self._attempts.run_from_claim(claim, sale, shop_pass, now_us, key, request)

    async def _check_lonely_and_claim(
        self, sale: Sale, shop_pass: ShopPass, seats: list[int], now_us: int, key: str | None, booking_id: str
    ) -> HoldResult:
        """Claim a choice that seems to leave a single seat free, once the claim store has shown that it does not."""
        row_seats = sale.find_lonely(seats)[1]
        sale.seats.replace_states(row_seats, await self._claims.states(sale.event.id, now_us, row_seats), now_us)
        self._refuse_lonely(sale, sale.find_lonely(seats)[0])
        return await self._claim(sale, shop_pass, seats, now_us, key, booking_id)

    def _refuse_lonely(self, sale: Sale, lonely: Sequence[int]) -> None:
        if lonely:
            ids = [sale.plan.seat_ids[seat] for seat in lonely]
            raise LonelySeat(
                f"this choice would leave {', '.join(ids)} as a single free seat; move by one seat", seats=ids
            )

    async def _claim_best(self, claim: BestClaim, now_us: int) -> ClaimedSeats | ClaimRefused:
        try:
            return await self._claims.claim_best(claim, now_us)
        except Unavailable:
            self.stats.unavailable += 1
            self.held.report_doubt(claim.event_id)
            raise
