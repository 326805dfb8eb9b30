"""Holding seats (B3, B4): pass, checks, local refusal, claim, ledger.

The order matters. What is known to be hopeless costs nothing but a look at this server's memory. The claim store lets
one caller a seat through. The ledger is the judge: only its fence makes a hold. A claim whose hold the ledger refused
is released; one whose answer was lost stays until the fan asks again, the hold ends, or the recovery service sees that
the ledger knows nothing of it.

Bookings are named after the Idempotency-Key when there is one, so asking again meets its own claim and its own booking.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence

from frontrow.boxoffice.holds.attempt import Answer, Recording
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales, on_sale
from frontrow.boxoffice.holds.held_seats import Watcher
from frontrow.boxoffice.model.best_seats import best_available
from frontrow.boxoffice.model.claims import BestClaim, Claimed, ClaimRefused, SeatClaim, check_name
from frontrow.boxoffice.model.events import check_on_sale
from frontrow.boxoffice.model.hold_values import Hold, NoSuchSeats, ShopPass
from frontrow.boxoffice.model.holds import SeatsTaken
from frontrow.boxoffice.model.seats import LonelySeat, Wish, check_count
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Unauthorised, Unavailable
from frontrow.core.ids import ID_CHARS, Ids, encode32

BEST_TRIES = 8  # sections tried for one wish when the local picture proves old
MAX_KEY_CHARS = 200


class HoldService(Recording):
    """Places holds on this server, refuses the hopeless (Refusing), and extends, releases and settles (HeldSeats)."""

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
        super().__init__(sales, claims, ledger, clock, on_change, on_doubt)
        self._ids = ids or Ids(clock)

    def attempt(
        self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str], *, idempotency_key: str | None = None
    ) -> "SeatsTaken | asyncio.Future[Answer]":
        """`place` without a task: a refusal at once, or the future of a hold or a refusal; other errors raise in both.

        Refusals are values that many may hear at once: look at them, do not raise them.
        """
        now_us = self._clock()
        sale = self._admit(event_id, shop_pass, now_us)
        seats = sale.plain(seat_ids)
        if sale.seats.hopeless(seats, shop_pass.fan, now_us):
            return self._refused(sale, seats, shop_pass.fan, now_us)
        if sale.lonely(seats)[0]:
            return asyncio.ensure_future(self._careful(sale, shop_pass, seats, now_us, idempotency_key))
        return self._begin(sale, shop_pass, seats, now_us, idempotency_key)

    async def place(
        self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str], *, idempotency_key: str | None = None
    ) -> Hold:
        """Hold these seats, all or none."""
        told = self.attempt(event_id, shop_pass, seat_ids, idempotency_key=idempotency_key)
        answer = told if isinstance(told, SeatsTaken) else await told
        if isinstance(answer, SeatsTaken):
            raise self._taken(self._sales.get(event_id), answer.seats)
        return answer

    async def _careful(self, sale: Sale, shop_pass: ShopPass, seats: list[int], now_us: int, key: str | None) -> Answer:
        """The way of a choice that seems to leave a seat alone."""
        await self._check_lonely(sale, seats, sale.lonely(seats)[1], now_us)
        return await self._begin(sale, shop_pass, seats, now_us, key)

    def _begin(
        self, sale: Sale, shop_pass: ShopPass, seats: list[int], now_us: int, key: str | None
    ) -> "asyncio.Future[Answer]":
        """Put the claim in line; the answer comes by itself."""
        booking_id = self._booking_id(shop_pass, key)
        wish = SeatClaim(sale.event.id, tuple(seats), shop_pass.fan, booking_id, now_us + sale.hold_us)
        claimed = self._claims.claim_soon(wish, now_us)
        request = ",".join(map(str, seats)) if key else ""
        return self.follow(claimed, sale, shop_pass, booking_id, now_us, key, request)

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
            answer = await self._best(claim, now_us)
            if isinstance(answer, Claimed):
                request = repr(wish) if idempotency_key else ""
                told = await self.record(sale, shop_pass, answer.seats, booking_id, now_us, idempotency_key, request)
                if isinstance(told, SeatsTaken):
                    raise self._taken(sale, told.seats)
                return told
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
        if not on_sale(sale.event, now_us):
            check_on_sale(sale.event, now_us)  # says why
        return sale

    def _booking_id(self, shop_pass: ShopPass, key: str | None) -> str:
        if key is None:
            return self._ids.new("bkg")
        if not 1 <= len(key) <= MAX_KEY_CHARS:
            raise InvalidInput(f"an Idempotency-Key has 1 to {MAX_KEY_CHARS} characters", param="Idempotency-Key")
        told = f"{shop_pass.event_id}\n{check_name(shop_pass.fan, 'fan')}\n{key}".encode()
        number = int.from_bytes(hashlib.blake2b(told, digest_size=17).digest(), "big")
        return f"bkg_{encode32(number & ((1 << 130) - 1), ID_CHARS)}"

    async def _best(self, claim: BestClaim, now_us: int) -> Claimed | ClaimRefused:
        try:
            return await self._claims.claim_best(claim, now_us)
        except Unavailable:
            self.stats.unavailable += 1
            self._doubt(claim.event_id)
            raise

    async def _check_lonely(self, sale: Sale, seats: Sequence[int], looked: Sequence[int], now_us: int) -> None:
        """Refuse a choice that leaves a seat alone, after making sure of the neighbours' real states."""
        sale.seats.replace(looked, await self._claims.states(sale.event.id, now_us, looked), now_us)
        alone, _ = sale.lonely(seats)
        if alone:
            ids = [sale.plan.seat_ids[seat] for seat in alone]
            raise LonelySeat(f"this choice would leave {', '.join(ids)} alone; move by one seat", seats=ids)
