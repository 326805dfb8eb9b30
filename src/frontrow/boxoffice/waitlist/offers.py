"""Offers freed seats to the waitlist (B11, B12, B14): the next entry in line that a free seat fits gets an offer.

Facts only say which events to serve (`note_fact`). `sweep` serves all of them in bounded steps, so a lost fact makes an
offer late but never loses it. The ledger says which seats are free. Claim store, unique index and cap apply to an offer
as to any hold. The ids of offers follow from the entry, so any number of servers may do this at once.

While somebody waits and nothing is free, the event is sold out, so that the public cannot take seats that belong to the
waitlist. Seats that nobody in line wants put it back on sale.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts import model as facts
from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.held_seats import SeatChangeListener
from frontrow.boxoffice.holds.model.claims import ClaimedSeats, ClaimRefused, SeatClaim
from frontrow.boxoffice.holds.model.holds import NewHold, SeatsTaken
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.holds.ports.seat_listener import SeatListener
from frontrow.boxoffice.pricing.model.prices import encode_lines
from frontrow.boxoffice.waitlist.model.offers import OFFER_TTL_S, NewOffer, Offer, OfferState
from frontrow.boxoffice.waitlist.model.waitlist import HAS_WAITLIST, WaitlistEntry
from frontrow.boxoffice.waitlist.model.waitlist_matching import SeatPool, assign_seats
from frontrow.boxoffice.waitlist.ports import WaitlistLedger
from frontrow.boxoffice.waitlist.waitlist_entries import free_seats
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.log_lines import OFFER_ENDED, OFFER_MADE

PAGE: Final = 200  # entries read, and offers made, at once
PAGES_PER_ROUND: Final = 50  # the next call continues from there
ROUNDS: Final = 4  # what one entry could not take is offered to others in the same call
END_BATCH: Final = 500
END_BATCHES_PER_SWEEP: Final = 100
EVERY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 30.0
FRONT: Final = (-1, 0)
FREEING: Final = (
    facts.HoldChanged,
    facts.HoldExpired,
    facts.HoldReleased,
    facts.PaymentDeclined,
    facts.BookingCancelled,
    facts.BookingRefunded,
    facts.BookingPartlyRefunded,
    facts.OfferDeclined,
    facts.OfferLapsed,
    facts.TicketReturned,
    facts.WaitlistJoined,  # a free seat may fit only this entry
)


class OfferStats(msgspec.Struct):
    events_served: int = 0
    offered: int = 0
    ended: int = 0
    refused: int = 0
    failures: int = 0


class OfferWorker:
    """Serves the waitlists of the events that are on sale on this server."""

    def __init__(
        self,
        sales: Sales,
        ledger: WaitlistLedger,
        claims: SeatClaims,
        seats: SeatListener,
        clock: Clock,
        *,
        offer_ttl_s: int = OFFER_TTL_S,
        every_s: float = EVERY_S,
        on_change: SeatChangeListener | None = None,
    ) -> None:
        self._sales, self._ledger, self._claims, self._seats, self._clock = sales, ledger, claims, seats, clock
        self._offer_us = offer_ttl_s * US_PER_S
        self._every_s = every_s
        self._on_change = on_change
        self._dirty: set[str] = set()
        self._woken = asyncio.Event()
        self._places: dict[str, tuple[int, int]] = {}  # where the next call continues a long line
        self.stats = OfferStats()

    # Which events to serve, and when.

    def note_fact(self, fact: facts.Fact) -> None:
        """Note a fact from the bus. Facts may come in any order, twice or never."""
        if isinstance(fact, FREEING):
            self._dirty.add(fact.event_id)
            self._woken.set()

    async def sweep(self) -> int:
        """End offers that are over, then serve every event. Returns how many offers were made."""
        await self.end_due_offers()
        offered = 0
        for event_id in sorted(await self._ledger.waitlist.events_to_serve(list(self._sales))):
            offered += await self.serve_event(event_id)
        return offered

    async def serve_noted(self) -> int:
        """Serve the events of the facts that were noted."""
        dirty, self._dirty = self._dirty, set()
        open_here = dirty & set(self._sales)
        if not open_here:
            return 0
        try:
            await self.end_due_offers()
            return sum([await self.serve_event(event_id) for event_id in sorted(open_here)])
        except FrontrowError:
            self._dirty |= open_here
            raise

    async def run(self) -> None:
        """Serve noted events at once and all events every few seconds, until cancelled."""
        pause_s, swept_at_us = self._every_s, 0
        while True:  # until cancelled
            try:
                if self._clock() - swept_at_us >= self._every_s * US_PER_S:
                    swept_at_us = self._clock()
                    await self.sweep()
                await self.serve_noted()
                pause_s = self._every_s
                note_success()
            except FrontrowError as error:  # ledger or claim store unavailable: longer pauses, up to a bound
                self.stats.failures += 1
                note_failure(error)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                await asyncio.sleep(min(pause_s, 1.0))
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()

    async def end_due_offers(self) -> int:
        """End offers that lapsed or whose booking moved on, and free the seats of lapsed ones."""
        count = 0
        for _ in range(END_BATCHES_PER_SWEEP):
            ended = await self._ledger.waitlist.end_finished_offers(self._clock(), END_BATCH)
            for offer in ended:
                ids = {"offer_id": offer.id, "booking_id": offer.booking_id, "event_id": offer.event_id}
                OFFER_ENDED(**ids, offer_state=offer.state.value, seats=len(offer.seats))
                self._dirty.add(offer.event_id)
                if offer.state is not OfferState.CLAIMED and offer.event_id in set(self._sales):
                    await self._seats.freed(offer.event_id, offer.seats, offer.booking_id)
            count += len(ended)
            if len(ended) < END_BATCH:
                break
        self.stats.ended += count
        return count

    # Who is offered what.

    async def serve_event(self, event_id: str) -> int:
        """Offer the event's free seats to the next in line. Returns how many offers were made."""
        sale, now_us = self._sales.get(event_id), self._clock()
        self.stats.events_served += 1
        event = await self._ledger.catalogue.event(event_id)
        if event != sale.event:
            sale.update_event(event)
        in_sale = event.sale_starts_at_us <= now_us < event.sale_ends_at_us
        if event.status not in HAS_WAITLIST or event.paused or not in_sale:
            return 0
        summary = await self._ledger.waitlist.read_waitlist_summary(event_id, now_us)
        if not summary.waiting and event.status is EventStatus.ON_SALE:
            return 0
        if summary.taken >= sale.plan.size:
            await self._set_status(sale, EventStatus.SOLD_OUT)
            return 0
        pool = await self._pool(sale, now_us)
        offered, saw_all = await self._serve(sale, pool, now_us) if summary.waiting else (0, True)
        if not pool.free:
            await self._set_status(sale, EventStatus.SOLD_OUT)
        elif saw_all:
            await self._set_status(sale, EventStatus.ON_SALE)
        return offered

    async def _pool(self, sale: Sale, now_us: int) -> SeatPool:
        states = await free_seats(self._ledger, sale, now_us)
        free = [seat for seat, state in enumerate(states) if not state]
        last = await self._ledger.waitlist.last_fans(sale.event.id, free)
        return SeatPool(
            sale.plan, sale.layouts, sale.section_masks, (s for s, state in enumerate(states) if state), last
        )

    async def _serve(self, sale: Sale, pool: SeatPool, now_us: int) -> tuple[int, bool]:
        """Make offers in the order of the line. Returns how many, and whether the whole line was read."""
        offered, skipped = 0, set[str]()
        for _ in range(ROUNDS):
            place = self._places.pop(sale.event.id, FRONT)
            whole, refused = place == FRONT, 0
            for _ in range(PAGES_PER_ROUND):
                sections = pool.free_by_section()
                page = (
                    await self._ledger.waitlist.waiting_page(sale.event.id, sections, place, PAGE) if sections else []
                )
                given = assign_seats((entry for entry in page if entry.id not in skipped), pool)
                won, ineligible = await self._offer_all(sale, given, pool, now_us)
                offered, refused = offered + won, refused + len(given) - won
                skipped |= ineligible
                if len(page) < PAGE:
                    break
                place = (page[-1].rank, page[-1].number)
            else:
                self._places[sale.event.id] = place
                return offered, False
            if not refused and whole:
                return offered, True
        return offered, False

    async def _offer_all(
        self,
        sale: Sale,
        given: Sequence[tuple[WaitlistEntry, tuple[int, ...]]],
        pool: SeatPool,
        now_us: int,
    ) -> tuple[int, set[str]]:
        """Claim the seats, then save holds and offers. The seats of refused offers are free again in the pool.

        Returns how many offers were made, and the entries that can have none: they are gone, or at their cap.
        """
        news = [self._new_offer(sale, entry, seats, now_us) for entry, seats in given]
        claims = await asyncio.gather(*(self._claim(new.hold) for new in news), return_exceptions=True)
        failed = next((error for error in claims if isinstance(error, BaseException)), None)
        if failed is not None:  # the claims stay until the next call, which uses the same ids
            raise failed
        claimed = [new for new, answer in zip(news, claims, strict=True) if isinstance(answer, ClaimedSeats)]
        answers = dict(zip([new.id for new in claimed], await self._ledger.waitlist.make_offers(claimed), strict=True))
        won, ineligible = 0, set[str]()
        for (entry, seats), new, claim in zip(given, news, claims, strict=True):
            answer = answers.get(new.id)
            if isinstance(answer, Offer):
                won += 1
                ids = {"offer_id": answer.id, "booking_id": answer.booking_id, "event_id": answer.event_id}
                OFFER_MADE(**ids, seats=len(answer.seats))
                await self._follow_ledger(sale, new, answer)
                continue
            taken: set[int] = set()
            if isinstance(claim, ClaimRefused):
                taken = {seat.seat for seat in claim.taken} or set(seats)
            elif isinstance(answer, SeatsTaken):
                taken = set(answer.seats)
            if answer is not None:
                await self._claims.release(sale.event.id, seats, new.hold.booking_id)
            if not taken:  # because of the entry
                ineligible.add(entry.id)
            self.stats.refused += 1
            pool.free_again(seat for seat in seats if seat not in taken)
        self.stats.offered += won
        return won, ineligible

    def _new_offer(self, sale: Sale, entry: WaitlistEntry, seats: tuple[int, ...], now_us: int) -> NewOffer:
        offer_id, booking_id = entry.next_offer_ids()
        quote, event = sale.quote(seats), sale.event
        hold = NewHold(
            booking_id,
            event.id,
            entry.fan,
            seats,
            now_us,
            now_us + self._offer_us,
            quote.total_minor,
            event.currency,
            quote.seat_totals_minor,
            event.max_per_person,
            price_lines=encode_lines(quote.lines),
            offer_id=offer_id,
        )
        return NewOffer(offer_id, entry.id, hold)

    async def _claim(self, hold: NewHold) -> ClaimedSeats | ClaimRefused:
        claim = SeatClaim(hold.event_id, hold.seats, hold.fan, hold.booking_id, hold.expires_at_us)
        return await self._claims.claim(claim, hold.now_us)

    async def _follow_ledger(self, sale: Sale, new: NewOffer, offer: Offer) -> None:
        """Update claim store and seat map after the ledger saved an offer."""
        extra = [seat for seat in new.hold.seats if seat not in offer.seats]
        if extra:  # another server had already offered other seats
            await self._claims.release(offer.event_id, extra, offer.booking_id)
        sale.seats.mark_taken(offer.seats, offer.fan, offer.expires_at_us, new.hold.now_us)
        if self._on_change is not None:
            self._on_change(offer.event_id, offer.seats)

    async def _set_status(self, sale: Sale, to: EventStatus) -> None:
        """Move the event to sold out, or back on sale, if it is not there already."""
        if sale.event.status is not to:
            event = await self._ledger.waitlist.shift_event(sale.event.id, sale.event.status, to, self._clock())
            if event is not None:
                sale.update_event(event)
