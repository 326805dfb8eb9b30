"""Refusing what is hopeless from this server's memory (N2): nobody is asked, nothing is made, one look a seat.

A refusal is a value, made once a seat and shared by everybody who hears it; it is never raised. Now and then one is
compared with the claim store, at most `AUDITS_A_S` times a second, so that the share of wrong refusals is known.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from frontrow.boxoffice.holds.events_on_sale import Sale, Sales, on_sale
from frontrow.boxoffice.holds.held_seats import HeldSeats, Watcher
from frontrow.boxoffice.model.hold_values import HoldStats, ShopPass
from frontrow.boxoffice.model.holds import SeatsTaken
from frontrow.boxoffice.ports.ledger import Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

AUDIT_EVERY = 64  # one in so many local refusals is checked against the claim store
AUDITS_A_S = 200


class Refusing(HeldSeats):
    """The local refusals of a hold service."""

    def __init__(
        self, sales: Sales, claims: SeatClaims, ledger: Ledger, clock: Clock, on_change: Watcher | None = None
    ) -> None:
        super().__init__(sales, claims, ledger, clock, on_change)
        self._background: set[asyncio.Task[Any]] = set()
        self._audit_at = AUDIT_EVERY  # the number of the refusal to be looked at next
        self._next_audit_us = 0
        self.stats = HoldStats()

    def refusal(self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str]) -> SeatsTaken | None:
        """The answer to a hopeless attempt, at once and without a task; None: ask `place`, which explains all else."""
        now_us = self._clock()
        sale = self._sales.get(event_id)
        if shop_pass.event_id != event_id or now_us >= shop_pass.expires_at_us:
            return None
        if len(seat_ids) != 1:
            return self._several(sale, shop_pass, seat_ids, now_us)
        seat = sale.index_of.get(seat_ids[0], -1)
        if seat < 0 or not sale.seats.is_anothers(seat, shop_pass.fan, now_us) or not on_sale(sale.event, now_us):
            return None
        self._count(sale, seat, now_us)
        return sale.refusals.get(seat) or self._ready(sale, seat)

    def refusals(self, event_id: str, asks: Sequence[tuple[ShopPass, Sequence[str]]]) -> "list[SeatsTaken | None]":
        """`refusal` for everybody who came in one turn of the event loop: the sale and the clock are read once."""
        now_us = self._clock()
        sale = self._sales.get(event_id)
        if not on_sale(sale.event, now_us):
            return [None] * len(asks)
        index_of, ready, told = sale.index_of, sale.refusals, []
        until_us, ends_at_us, shown, fans = sale.seats.beliefs(now_us)
        counted, last = 0, 0
        for shop_pass, seat_ids in asks:  # the hottest loop of a sale: `refusal`, written out
            answer = None
            if shop_pass.event_id == event_id and now_us < shop_pass.expires_at_us:
                seat = index_of.get(seat_ids[0], -1) if len(seat_ids) == 1 else -1
                if seat >= 0:
                    if until_us[seat] > now_us or (shown[seat] and ends_at_us[seat] > now_us):
                        fan = shop_pass.fan
                        if fans.get(seat, fan) != fan:
                            counted, last = counted + 1, seat
                            answer = ready.get(seat) or self._ready(sale, seat)
                elif len(seat_ids) > 1:
                    answer = self._several(sale, shop_pass, seat_ids, now_us)
            told.append(answer)
        if counted:
            self._count(sale, last, now_us, counted)
        return told

    def _several(self, sale: Sale, shop_pass: ShopPass, seat_ids: Sequence[str], now_us: int) -> SeatsTaken | None:
        seats = sale.indexes(seat_ids)
        if not seats or not sale.seats.hopeless(seats, shop_pass.fan, now_us) or not on_sale(sale.event, now_us):
            return None
        return self._refused(sale, seats, shop_pass.fan, now_us)

    def _refused(self, sale: Sale, seats: Sequence[int], fan: str, now_us: int) -> SeatsTaken:
        """The refusal of a hopeless attempt, counted; it names those of the seats that are known to be taken."""
        known = seats if len(seats) == 1 else sale.seats.known_taken(seats, fan, now_us)
        self._count(sale, known[0], now_us)
        return self._answer(sale, known)

    def _answer(self, sale: Sale, seats: Sequence[int]) -> SeatsTaken:
        """A refusal as a value: the ready one where there is one."""
        if len(seats) != 1:
            return self._taken(sale, seats)
        return sale.refusals.get(seats[0]) or self._ready(sale, seats[0])

    def _ready(self, sale: Sale, seat: int) -> SeatsTaken:
        ready = sale.refusals[seat] = self._taken(sale, (seat,))
        return ready

    def _taken(self, sale: Sale, seats: Sequence[int]) -> SeatsTaken:
        """A refusal of its own, to be raised, naming the seats by their ids."""
        error = SeatsTaken(sale.event.id, seats)
        error.about["seats"] = [sale.plan.seat_ids[seat] for seat in error.seats]
        return error

    def _count(self, sale: Sale, seat: int, now_us: int, refused: int = 1) -> None:
        self.stats.refused_locally += refused
        if self.stats.refused_locally >= self._audit_at and now_us >= self._next_audit_us:
            self._audit_at = self.stats.refused_locally + AUDIT_EVERY
            self._next_audit_us = now_us + US_PER_S // AUDITS_A_S
            self._spawn(self._audit(sale, (seat,), now_us))

    async def _audit(self, sale: Sale, seats: Sequence[int], now_us: int) -> None:
        """Was a local refusal right? Its seats must be taken in the claim store, else the belief is corrected."""
        taken = await self._claims.states(sale.event.id, now_us, seats)
        self.stats.audited += 1
        if not taken:
            self.stats.audited_free += 1
        sale.seats.replace(seats, taken, now_us)

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(quietly(work))
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def quietly(work: Awaitable[Any], then: Callable[[], None] | None = None) -> None:
    """Best effort: what fails here is put right by expiry or recovery."""
    try:
        await work
    except FrontrowError:
        return
    finally:
        if then is not None:
            then()
