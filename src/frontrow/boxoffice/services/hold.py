"""Holding seats (B3, B4): pass, checks, local refusal, claim, ledger.

The order matters. What is known to be hopeless costs nothing but a look at this server's memory. The claim store lets
one caller a seat through. The ledger is the judge: only its fence makes a hold. A claim whose hold the ledger refused
is released; one whose answer was lost stays until the fan asks again, the hold ends, or the recovery service sees that
the ledger knows nothing of it.

Bookings are named after the Idempotency-Key when there is one, so asking again meets its own claim and its own booking.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from frontrow.boxoffice.model.attempts import Hold, HoldStats, NoSuchSeats, ShopPass
from frontrow.boxoffice.model.best import best_available
from frontrow.boxoffice.model.claims import BestClaim, Claimed, SeatClaim, check_name
from frontrow.boxoffice.model.events import check_on_sale
from frontrow.boxoffice.model.holds import IdempotencyMismatch, NewHold, PlacedHold, SeatsTaken
from frontrow.boxoffice.model.seats import LonelySeat, Wish, check_count
from frontrow.boxoffice.ports import Ledger, SeatClaims
from frontrow.boxoffice.services.held import HeldSeats, Watcher
from frontrow.boxoffice.services.sales import Sale, Sales, on_sale
from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, InvalidInput, Refused, Unauthorised, Unavailable
from frontrow.core.ids import ID_CHARS, Ids, encode32

BEST_TRIES = 8  # sections tried for one wish when the local picture proves old
AUDIT_EVERY = 64  # one in so many local refusals is checked against the claim store
MAX_KEY_CHARS = 200


class HoldService(HeldSeats):
    """Places holds on this server, and (HeldSeats) extends, releases and settles them."""

    def __init__(
        self,
        sales: Sales,
        claims: SeatClaims,
        ledger: Ledger,
        clock: Clock,
        *,
        ids: Ids | None = None,
        on_change: Watcher | None = None,
        on_doubt: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(sales, claims, ledger, clock, on_change)
        self._ids = ids or Ids(clock)
        self._on_doubt = on_doubt  # the claim store is lost or disagrees with the ledger: see to it
        self._background: set[asyncio.Task[Any]] = set()
        self.stats = HoldStats()

    # placing

    def refusal(self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str]) -> SeatsTaken | None:
        """The answer to a hopeless attempt, at once and without a task; None: ask `place`, which explains all else."""
        now_us = self._clock()
        if shop_pass.event_id != event_id or now_us >= shop_pass.expires_at_us:
            return None
        sale = self._sales.get(event_id)
        seats = sale.indexes(seat_ids)
        if not seats or not sale.seats.hopeless(seats, shop_pass.fan, now_us) or not on_sale(sale.event, now_us):
            return None
        if len(seats) > 1:
            return self._taken(sale, self._refuse_locally(sale, seats, shop_pass.fan, now_us))
        self._refuse_locally(sale, seats, shop_pass.fan, now_us)
        ready = sale.refusals.get(seats[0])  # a value that is never raised, so one serves everybody
        if ready is None:
            ready = sale.refusals[seats[0]] = self._taken(sale, seats)
        return ready

    async def place(
        self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str], *, idempotency_key: str | None = None
    ) -> Hold:
        """Hold these seats, all or none."""
        now_us = self._clock()
        sale = self._admit(event_id, shop_pass, now_us)
        seats = sale.plain(seat_ids)
        if sale.seats.hopeless(seats, shop_pass.fan, now_us):
            raise self._taken(sale, self._refuse_locally(sale, seats, shop_pass.fan, now_us))
        alone, looked = sale.lonely(seats)
        if alone:
            await self._check_lonely(sale, seats, looked, now_us)
        booking_id = self._booking_id(shop_pass, idempotency_key)
        wish = SeatClaim(event_id, tuple(seats), shop_pass.fan, booking_id, now_us + sale.hold_us)
        answer = await self._claim(self._claims.claim(wish, now_us), event_id, wish.seats, booking_id)
        if not isinstance(answer, Claimed):
            self.stats.refused_by_claims += 1
            sale.seats.learn(answer.taken, now_us)
            raise self._taken(sale, [seat.seat for seat in answer.taken])
        request = ",".join(map(str, seats)) if idempotency_key else ""
        return await self._record(sale, shop_pass, answer.seats, booking_id, now_us, idempotency_key, request)

    async def place_best(
        self, event_id: str, shop_pass: ShopPass, wish: Wish, *, idempotency_key: str | None = None
    ) -> Hold:
        """Hold the best seats that fit the wish; chosen in the claim store's atomic step."""
        now_us = self._clock()
        sale = self._admit(event_id, shop_pass, now_us)
        check_count(sale.event, wish.count)
        masks = dict(sale.masks(wish))
        booking_id = self._booking_id(shop_pass, idempotency_key)
        for _ in range(BEST_TRIES):
            sale.seats.expire(now_us)
            choice = best_available(sale.layouts, sale.seats.states, list(masks.items()), wish.count, wish.worst)
            if choice is None:
                break
            claim = BestClaim(
                event_id, choice.section, masks[choice.section], wish.count, int(choice.grade), shop_pass.fan,
                booking_id, now_us + sale.hold_us,
            )  # fmt: skip
            answer = await self._claim(self._claims.claim_best(claim, now_us), event_id, (), booking_id)
            if isinstance(answer, Claimed):
                request = repr(wish) if idempotency_key else ""
                return await self._record(sale, shop_pass, answer.seats, booking_id, now_us, idempotency_key, request)
            section = sale.plan.section_range(choice.section)
            sale.seats.replace(section, {seat.seat: seat for seat in answer.taken}, now_us)
        self.stats.refused_by_claims += 1
        raise NoSuchSeats(f"no {wish.count} free seats fit the wish; ask for fewer or elsewhere", event=event_id)

    def _admit(self, event_id: str, shop_pass: ShopPass | None, now_us: int) -> Sale:
        """The sale, if the pass is for it and alive and the event is on sale."""
        if shop_pass is None or shop_pass.event_id != event_id:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
        if now_us >= shop_pass.expires_at_us:
            raise Unauthorised("the pass has ended; join the waiting room again", event=event_id)
        sale = self._sales.get(event_id)
        check_on_sale(sale.event, now_us)
        return sale

    def _booking_id(self, shop_pass: ShopPass, key: str | None) -> str:
        if key is None:
            return self._ids.new("bkg")
        if not 1 <= len(key) <= MAX_KEY_CHARS:
            raise InvalidInput(f"an Idempotency-Key has 1 to {MAX_KEY_CHARS} characters", param="Idempotency-Key")
        told = f"{shop_pass.event_id}\n{check_name(shop_pass.fan, 'fan')}\n{key}".encode()
        number = int.from_bytes(hashlib.blake2b(told, digest_size=17).digest(), "big")
        return f"bkg_{encode32(number & ((1 << 130) - 1), ID_CHARS)}"

    async def _claim(self, call: Awaitable[Any], event_id: str, seats: tuple[int, ...], booking_id: str) -> Any:
        """The claim store's answer; doubts are reported, and a caller who left gives back what may have been won."""
        try:
            return await call
        except asyncio.CancelledError:
            if seats:
                self._spawn(self._claims.release(event_id, seats, booking_id))
            raise
        except Unavailable:
            self.stats.unavailable += 1
            self._doubt(event_id)
            raise

    async def _record(
        self,
        sale: Sale,
        shop_pass: ShopPass,
        seats: tuple[int, ...],
        booking_id: str,
        now_us: int,
        key: str | None,
        request: str,
    ) -> Hold:
        """Have the ledger say so, or give the claim back."""
        prices = sale.prices_minor(seats)
        new = NewHold(
            booking_id, sale.event.id, shop_pass.fan, seats, now_us, now_us + sale.hold_us, sum(prices),
            sale.event.currency, prices, sale.event.max_per_person, shop_pass.id, key, request,
        )  # fmt: skip
        try:
            placed = await self._ledger.place_hold(new)
        except asyncio.CancelledError:  # the caller left; the wish may or may not be in line: see it through
            self._spawn(self._see_through(sale, new))
            raise
        except Unavailable:  # it may have been written: the claim stays, asking again finds both
            self.stats.unavailable += 1
            raise
        except FrontrowError as error:
            self.stats.refused_by_ledger += 1
            await _quietly(self._give_back(sale, booking_id, seats, error, now_us))
            if isinstance(error, SeatsTaken):
                raise self._taken(sale, error.seats) from error
            raise
        if placed.seats != seats:  # a repeated wish for the best: the first answer stands
            await self._claims.release(sale.event.id, [s for s in seats if s not in placed.seats], booking_id)
        return self._won(sale, placed, sum(prices), now_us)

    async def _see_through(self, sale: Sale, new: NewHold) -> None:
        try:
            self._won(sale, await self._ledger.place_hold(new), new.amount_minor, new.now_us)
        except Refused as error:
            await self._give_back(sale, new.booking_id, new.seats, error, new.now_us)

    def _won(self, sale: Sale, placed: PlacedHold, amount_minor: int, now_us: int) -> Hold:
        self.stats.won += 1
        self.stats.seats_won += len(placed.seats)
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

    async def _give_back(
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

    # refusing

    def _refuse_locally(self, sale: Sale, seats: Sequence[int], fan: str, now_us: int) -> Sequence[int]:
        """Count, audit now and then; which of the seats are known to be taken."""
        self.stats.refused_locally += 1
        known = seats if len(seats) == 1 else sale.seats.known_taken(seats, fan, now_us)
        if self.stats.refused_locally % AUDIT_EVERY == 0:
            self._spawn(self._audit(sale, known, now_us))
        return known

    async def _audit(self, sale: Sale, seats: Sequence[int], now_us: int) -> None:
        """Was a local refusal right? Its seats must be taken in the claim store, else the belief is corrected."""
        taken = await self._claims.states(sale.event.id, now_us, seats)
        self.stats.audited += 1
        if not taken:
            self.stats.audited_free += 1
        sale.seats.replace(seats, taken, now_us)

    def _taken(self, sale: Sale, seats: Sequence[int]) -> SeatsTaken:
        """The refusal, naming the seats by their ids."""
        error = SeatsTaken(sale.event.id, seats)
        error.about["seats"] = [sale.plan.seat_ids[seat] for seat in error.seats]
        return error

    async def _check_lonely(self, sale: Sale, seats: Sequence[int], looked: Sequence[int], now_us: int) -> None:
        """Refuse a choice that leaves a seat alone, after making sure of the neighbours' real states."""
        sale.seats.replace(looked, await self._claims.states(sale.event.id, now_us, looked), now_us)
        alone, _ = sale.lonely(seats)
        if alone:
            ids = [sale.plan.seat_ids[seat] for seat in alone]
            raise LonelySeat(f"this choice would leave {', '.join(ids)} alone; move by one seat", seats=ids)

    def _doubt(self, event_id: str) -> None:
        if self._on_doubt is not None:
            self._on_doubt(event_id)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(_quietly(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def aclose(self) -> None:
        """Wait for audits and give-backs on their way."""
        await asyncio.gather(*self._background)


async def _quietly(work: Awaitable[Any]) -> None:
    """Best effort: what fails here is put right by expiry or recovery."""
    try:
        await work
    except FrontrowError:
        return
