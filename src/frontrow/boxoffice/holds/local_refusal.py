"""Refuses attempts for taken seats from this server's memory (N2): no store is called, and one seat costs one lookup.

A refusal is a value. It is built once per seat and shared by everyone who receives it, so it is never raised. To
measure how many refusals are wrong, one in `AUDIT_EVERY` is compared with the claim store, at most `AUDITS_PER_S` times
per second.
"""

from collections.abc import Sequence

from frontrow.boxoffice.holds.background_tasks import BackgroundTasks
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.model.holds import HoldStats, SeatsTaken, ShopPass
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.core.clock import US_PER_S, Clock

AUDIT_EVERY = 64  # one in this many local refusals is checked against the claim store
AUDITS_PER_S = 200


class LocalRefusals:
    """Finds, counts and audits the refusals that need no store."""

    def __init__(
        self, sales: Sales, claims: SeatClaims, clock: Clock, stats: HoldStats, background: BackgroundTasks
    ) -> None:
        self._sales, self._claims, self._clock = sales, claims, clock
        self._stats, self._background = stats, background
        self._audit_at = AUDIT_EVERY  # the count of refusals at which the next audit is due
        self._next_audit_us = 0

    def find(self, event_id: str, shop_pass: ShopPass, seat_ids: Sequence[str]) -> SeatsTaken | None:
        """The refusal of an attempt that cannot succeed, or None.

        None says nothing about the attempt: `HoldService.place` checks everything and explains what is wrong.
        """
        now_us = self._clock()
        sale = self._sales.get(event_id)
        if (
            shop_pass.event_id != event_id
            or now_us >= shop_pass.expires_at_us
            or not sale.sold_from_us <= now_us < sale.sold_until_us
        ):
            return None
        if len(seat_ids) != 1:
            return self._find_for_group(sale, shop_pass, seat_ids, now_us)
        seat = sale.index_of.get(seat_ids[0], -1)
        if seat < 0 or not sale.seats.is_taken_by_other(seat, shop_pass.fan, now_us):
            return None
        stats = self._stats
        stats.refused_locally = refused = stats.refused_locally + 1
        if refused >= self._audit_at:
            self._audit_if_due(sale, seat, now_us)
        return sale.refusals.get(seat) or sale.refusal_for((seat,))

    def refuse(self, sale: Sale, seats: Sequence[int], fan: str, now_us: int) -> SeatsTaken:
        """Count and return the refusal of these seats; it names those that are known to be taken."""
        taken = seats if len(seats) == 1 else sale.seats.taken_by_others(seats, fan, now_us)
        self._stats.refused_locally += 1
        if self._stats.refused_locally >= self._audit_at:
            self._audit_if_due(sale, taken[0], now_us)
        return sale.refusal_for(taken)

    def _find_for_group(
        self, sale: Sale, shop_pass: ShopPass, seat_ids: Sequence[str], now_us: int
    ) -> SeatsTaken | None:
        seats = sale.find_indexes(seat_ids)
        if not seats or not sale.seats.any_taken_by_other(seats, shop_pass.fan, now_us):
            return None
        return self.refuse(sale, seats, shop_pass.fan, now_us)

    def _audit_if_due(self, sale: Sale, seat: int, now_us: int) -> None:
        if now_us >= self._next_audit_us:
            self._audit_at = self._stats.refused_locally + AUDIT_EVERY
            self._next_audit_us = now_us + US_PER_S // AUDITS_PER_S
            self._background.spawn(self._audit(sale, (seat,), now_us))

    async def _audit(self, sale: Sale, seats: Sequence[int], now_us: int) -> None:
        """Compare a local refusal with the claim store, and correct the seat cache if it was wrong."""
        taken = await self._claims.states(sale.event.id, now_us, seats)
        self._stats.audited += 1
        if not taken:
            self._stats.audited_free += 1
        sale.seats.replace_states(seats, taken, now_us)
