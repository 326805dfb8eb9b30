"""The waitlist as fans use it (B11): join, see one's position, leave, claim or decline an offer.

waitlist.offers makes the offers. Joining is refused while the event is on sale and seats that fit are free. The free
seats may be a second old: the check is a courtesy, not a guard.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import EventStatus, NotOnSale
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.claims import SeatClaim
from frontrow.boxoffice.holds.model.requested_seats import check_count
from frontrow.boxoffice.holds.ports.ledger import Ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.waitlist.model.offers import Offer
from frontrow.boxoffice.waitlist.model.waitlist import (
    HAS_WAITLIST,
    EntryState,
    NewEntry,
    NotWaiting,
    SeatsStillFree,
    WaitlistEntry,
)
from frontrow.boxoffice.waitlist.model.waitlist_matching import SeatPool
from frontrow.boxoffice.waitlist.ports import WaitlistLedger
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.ids import Ids

FREE_SEATS_US: Final = 1_000_000  # how old the free seats may be that joining checks


class Position(msgspec.Struct, frozen=True):
    """A fan's position in line: 1 is next, 0 means that an offer is open."""

    entry: WaitlistEntry
    position: int


async def free_seats(ledger: Ledger, sale: Sale, now_us: int) -> bytearray:
    """One byte per seat: 0 where the ledger says that it is free, else 1."""
    states = bytearray(sale.plan.size)
    for seat in sale.event.withheld:
        states[seat] = 1
    async for active in ledger.active_seats(sale.event.id, now_us):
        states[active.seat_index] = 1
    return states


class WaitlistService:
    """The waitlists of the events on sale on this server."""

    def __init__(
        self,
        sales: Sales,
        ledger: WaitlistLedger,
        claims: SeatClaims,
        seats: SeatListener,
        clock: Clock,
        *,
        ids: Ids | None = None,
    ) -> None:
        self._sales, self._ledger, self._claims, self._seats, self._clock = sales, ledger, claims, seats, clock
        self._ids = ids or Ids(clock)
        self._free_seats: dict[str, tuple[int, bytearray]] = {}
        self._reading = asyncio.Lock()

    async def join(
        self, event_id: str, fan: str, count: int, *, sections: Sequence[str] = (), split_ok: bool = False
    ) -> WaitlistEntry:
        """Join the waitlist of an event, for any section or the chosen ones. Repeating it changes nothing."""
        sale, now_us = self._sales.get(event_id), self._clock()
        event = await self._ledger.catalogue.event(event_id)
        if event.status not in HAS_WAITLIST or now_us >= event.sale_ends_at_us:
            raise NotOnSale(f"{event.name} has no waitlist: it is not for sale", reason=event.status.value)
        check_count(event, count)
        for section in sections:
            sale.plan.section_number(section)  # raises for an unknown section
        rules = await self._ledger.waitlist.waitlist_rules(event_id)
        new = NewEntry(self._ids.new("wle"), event_id, fan, count, tuple(sections), split_ok, rules.rank(fan))
        new.check()
        if event.status is EventStatus.ON_SALE and not event.paused and now_us >= event.sale_starts_at_us:
            await self._refuse_if_free(sale, new, now_us)
        return await self._ledger.waitlist.join_waitlist(new, now_us)

    async def _refuse_if_free(self, sale: Sale, new: NewEntry, now_us: int) -> None:
        async with self._reading:
            at_us, states = self._free_seats.get(sale.event.id, (-FREE_SEATS_US, bytearray()))
            if now_us - at_us >= FREE_SEATS_US:
                states = await free_seats(self._ledger, sale, now_us)
                self._free_seats[sale.event.id] = (now_us, states)
        pool = SeatPool(
            sale.plan, sale.layouts, sale.section_masks, (seat for seat, state in enumerate(states) if state)
        )
        if pool.pick(new):
            raise SeatsStillFree("seats that fit your wish are on sale; choose them now", event=sale.event.id)

    def forget(self, event_id: str) -> None:
        """Drop what is cached of an event that is no longer sold here."""
        self._free_seats.pop(event_id, None)

    async def position(self, event_id: str, fan: str) -> Position:
        """The fan's position in line."""
        entry = await self._ledger.waitlist.entry_of_fan(event_id, fan)
        if entry is None:
            raise NotWaiting("you are not on the waitlist of this event", event=event_id)
        ahead = await self._ledger.waitlist.entries_ahead(entry) + 1 if entry.state is EntryState.WAITING else 0
        return Position(entry, ahead)

    async def leave(self, entry_id: str, fan: str) -> WaitlistEntry:
        """Leave the waitlist. An open offer goes to the next in line."""
        entry = await self._ledger.waitlist.entry(entry_id)
        open_offers = []
        if entry is not None and entry.fan == fan and entry.state is EntryState.OFFERED:
            offers = await self._ledger.waitlist.offers_of(entry.event_id, fan)
            open_offers = [offer for offer in offers if offer.open(self._clock())]
        left = await self._ledger.waitlist.leave_waitlist(entry_id, fan, self._clock())
        for offer in open_offers:
            await self._seats.freed(offer.event_id, offer.seats, offer.booking_id)
        return left

    async def offers(self, event_id: str, fan: str) -> list[Offer]:
        """The fan's offers that can be claimed now."""
        now_us = self._clock()
        return [offer for offer in await self._ledger.waitlist.offers_of(event_id, fan) if offer.open(now_us)]

    async def claim(self, offer_id: str, fan: str) -> Offer:
        """Accept the offer: its booking becomes an ordinary hold, to be paid like any other."""
        now_us = self._clock()
        found = await self._ledger.waitlist.offer(offer_id)
        until_us = now_us + US_PER_S
        if found is not None:  # accepting early takes no time away
            until_us = max(now_us + self._sales.get(found.event_id).hold_us, found.expires_at_us)
        offer = await self._ledger.waitlist.claim_offer(offer_id, fan, now_us, until_us)
        if offer.booking_state is BookingState.HELD and now_us < offer.hold_expires_at_us:
            claim = SeatClaim(offer.event_id, offer.seats, offer.fan, offer.booking_id, offer.hold_expires_at_us)
            await self._claims.claim(claim, now_us)
            self._sales.get(offer.event_id).seats.mark_taken(offer.seats, offer.fan, offer.hold_expires_at_us, now_us)
        return offer

    async def decline(self, offer_id: str, fan: str) -> Offer:
        """Decline the offer: its seats go to the next in line, and the fan keeps the place for other seats."""
        offer = await self._ledger.waitlist.decline_offer(offer_id, fan, self._clock())
        await self._seats.freed(offer.event_id, offer.seats, offer.booking_id)
        return offer
