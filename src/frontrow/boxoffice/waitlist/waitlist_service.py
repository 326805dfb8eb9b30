"""The waitlist as fans use it (B11): join, look, leave, claim or decline an offer. services.offering makes the offers.

Joining makes sense only when there is nothing to buy: while the event is on sale and seats that fit are free, it is
refused. That look may be a second old; it is a courtesy, not a guard.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.held_seats import SeatUpdates
from frontrow.boxoffice.model.bookings import BookingState
from frontrow.boxoffice.model.claims import SeatClaim
from frontrow.boxoffice.model.events import EventStatus, NotOnSale
from frontrow.boxoffice.model.seats import check_count
from frontrow.boxoffice.model.waitlist import Entry, EntryState, NewEntry, NotWaiting, Offer, SeatsStillFree
from frontrow.boxoffice.model.waitlist_matching import Pool
from frontrow.boxoffice.ports.ledger import Catalogue, Ledger
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.boxoffice.ports.waitlist import WaitlistBook
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.ids import Ids

LOOK_US: Final = 1_000_000  # how old the look before joining may be
SERVED: Final = frozenset({EventStatus.ON_SALE, EventStatus.SOLD_OUT})


class WaitlistLedger(Ledger, Protocol):
    """What the waitlist needs of the ledger."""

    @property
    def waitlist(self) -> WaitlistBook: ...

    @property
    def catalogue(self) -> Catalogue: ...


class Position(msgspec.Struct, frozen=True):
    """Where a fan stands: 1 is next; 0 while an offer is open."""

    entry: Entry
    position: int


async def free_seats(ledger: Ledger, sale: Sale, now_us: int) -> bytearray:
    """A byte a seat, 0 where the ledger says free."""
    states = bytearray(sale.plan.size)
    for seat in sale.event.withheld:
        states[seat] = 1
    async for active in ledger.active_seats(sale.event.id, now_us):
        states[active.seat_index] = 1
    return states


class WaitlistService:
    """What a fan can ask of the waitlist on this server."""

    def __init__(
        self,
        sales: Sales,
        ledger: WaitlistLedger,
        claims: SeatClaims,
        held: SeatUpdates,
        clock: Clock,
        *,
        ids: Ids | None = None,
    ) -> None:
        self._sales, self._ledger, self._claims, self._held, self._clock = sales, ledger, claims, held, clock
        self._ids = ids or Ids(clock)
        self._looks: dict[str, tuple[int, bytearray]] = {}
        self._looking = asyncio.Lock()

    async def join(
        self, event_id: str, fan: str, count: int, *, sections: Sequence[str] = (), split_ok: bool = False
    ) -> Entry:
        """Into the line of an event, for any section or the chosen ones. Asking again changes nothing."""
        sale, now_us = self._sales.get(event_id), self._clock()
        event = await self._ledger.catalogue.event(event_id)
        if event.status not in SERVED or now_us >= event.sale_ends_at_us:
            raise NotOnSale(f"{event.name} has no waitlist: it is not for sale", reason=event.status.value)
        check_count(event, count)
        for section in sections:
            sale.plan.section_number(section)  # an unknown one is refused here
        rules = await self._ledger.waitlist.waitlist_rules(event_id)
        new = NewEntry(self._ids.new("wle"), event_id, fan, count, tuple(sections), split_ok, rules.rank(fan))
        new.check()
        if event.status is EventStatus.ON_SALE and not event.paused and now_us >= event.sale_starts_at_us:
            await self._refuse_if_free(sale, new, now_us)
        return await self._ledger.waitlist.join_waitlist(new, now_us)

    async def _refuse_if_free(self, sale: Sale, new: NewEntry, now_us: int) -> None:
        async with self._looking:
            at_us, states = self._looks.get(sale.event.id, (-LOOK_US, bytearray()))
            if now_us - at_us >= LOOK_US:
                states = await free_seats(self._ledger, sale, now_us)
                self._looks[sale.event.id] = (now_us, states)
        pool = Pool(sale.plan, sale.layouts, sale.section_masks, (seat for seat, state in enumerate(states) if state))
        if pool.pick(new):
            raise SeatsStillFree("seats that fit your wish are on sale; choose them now", event=sale.event.id)

    def forget(self, event_id: str) -> None:
        """The event is sold here no longer."""
        self._looks.pop(event_id, None)

    async def position(self, event_id: str, fan: str) -> Position:
        """Where the fan stands in the line."""
        entry = await self._ledger.waitlist.entry_of_fan(event_id, fan)
        if entry is None:
            raise NotWaiting("you are not in line for this event", event=event_id)
        ahead = await self._ledger.waitlist.entries_ahead(entry) + 1 if entry.state is EntryState.WAITING else 0
        return Position(entry, ahead)

    async def leave(self, entry_id: str, fan: str) -> Entry:
        """Out of the line; an open offer goes to the next."""
        entry = await self._ledger.waitlist.entry(entry_id)
        open_offers = []
        if entry is not None and entry.fan == fan and entry.state is EntryState.OFFERED:
            offers = await self._ledger.waitlist.offers_of(entry.event_id, fan)
            open_offers = [offer for offer in offers if offer.open(self._clock())]
        left = await self._ledger.waitlist.leave_waitlist(entry_id, fan, self._clock())
        for offer in open_offers:
            await self._held.freed(offer.event_id, offer.seats, offer.booking_id)
        return left

    async def offers(self, event_id: str, fan: str) -> list[Offer]:
        """The fan's offers that can be claimed now."""
        now_us = self._clock()
        return [offer for offer in await self._ledger.waitlist.offers_of(event_id, fan) if offer.open(now_us)]

    async def claim(self, offer_id: str, fan: str) -> Offer:
        """Take the offer: its booking is an ordinary hold from now on, to be paid as any other."""
        now_us = self._clock()
        known = await self._ledger.waitlist.offer(offer_id)
        hold_us = self._sales.get(known.event_id).hold_us if known is not None else US_PER_S
        offer = await self._ledger.waitlist.claim_offer(offer_id, fan, now_us, now_us + hold_us)
        if offer.booking_state is BookingState.HELD and now_us < offer.hold_expires_at_us:
            wish = SeatClaim(offer.event_id, offer.seats, offer.fan, offer.booking_id, offer.hold_expires_at_us)
            await self._claims.claim(wish, now_us)
            self._sales.get(offer.event_id).seats.mark_taken(offer.seats, offer.fan, offer.hold_expires_at_us, now_us)
        return offer

    async def decline(self, offer_id: str, fan: str) -> Offer:
        """No, thank you: the seats go to the next in line, the place is kept for other seats."""
        offer = await self._ledger.waitlist.decline_offer(offer_id, fan, self._clock())
        await self._held.freed(offer.event_id, offer.seats, offer.booking_id)
        return offer
