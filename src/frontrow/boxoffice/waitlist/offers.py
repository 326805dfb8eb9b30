"""Makes offers of freed seats (B11, B12, B14): whatever freed a seat, the next in line whom it fits is offered it.

Facts only say where to look (`hear`); `sweep` looks everywhere in bounded steps, so with every fact lost an offer comes
later, never not at all. What is free is read from the ledger; claim store, unique index and cap decide about the
offer as about any hold. Ids of offers follow from the entry, so any number of servers may do this at once.

While somebody waits and nothing is free the event is sold out: the public cannot snatch what belongs to the line. Seats
that nobody in line wants put it back on sale.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.holds.events_on_sale import Sale, Sales
from frontrow.boxoffice.holds.held_seats import SeatChangeListener, SeatUpdates
from frontrow.boxoffice.model import facts
from frontrow.boxoffice.model.claims import Claimed, ClaimRefused, SeatClaim
from frontrow.boxoffice.model.events import EventStatus
from frontrow.boxoffice.model.holds import NewHold, SeatsTaken
from frontrow.boxoffice.model.waitlist import OFFER_TTL_S, Entry, NewOffer, Offer, OfferState
from frontrow.boxoffice.model.waitlist_matching import Pool, assign
from frontrow.boxoffice.ports.seat_claims import SeatClaims
from frontrow.boxoffice.waitlist.waitlist_service import SERVED, WaitlistLedger, free_seats
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError

PAGE: Final = 200  # entries looked at, and offers on their way, at once
PAGES_A_ROUND: Final = 50  # then the next look goes on from there
ROUNDS: Final = 4  # what one entry could not take goes to others in the same look
SETTLED_AT_ONCE: Final = 500
SETTLES_A_SWEEP: Final = 100
EVERY_S: Final = 5.0
LONGEST_PAUSE_S: Final = 30.0
FRONT: Final = (-1, 0)
FREEING: Final = (
    facts.HoldExpired,
    facts.HoldReleased,
    facts.PaymentDeclined,
    facts.BookingCancelled,
    facts.BookingRefunded,
    facts.BookingPartlyRefunded,
    facts.OfferDeclined,
    facts.OfferLapsed,
    facts.TicketReturned,
    facts.WaitlistJoined,  # a seat may be free that fits nobody else
)


class OfferingStats(msgspec.Struct):
    looks: int = 0
    offered: int = 0
    settled: int = 0
    refused: int = 0
    failures: int = 0


class Offering:
    """The worker that serves the lines of the events on sale on this server."""

    def __init__(
        self,
        sales: Sales,
        ledger: WaitlistLedger,
        claims: SeatClaims,
        held: SeatUpdates,
        clock: Clock,
        *,
        offer_ttl_s: int = OFFER_TTL_S,
        every_s: float = EVERY_S,
        on_change: SeatChangeListener | None = None,
    ) -> None:
        self._sales, self._ledger, self._claims, self._held, self._clock = sales, ledger, claims, held, clock
        self._offer_us = offer_ttl_s * US_PER_S
        self._every_s = every_s
        self._on_change = on_change
        self._dirty: set[str] = set()
        self._woken = asyncio.Event()
        self._places: dict[str, tuple[int, int]] = {}  # where the next look at a long line goes on
        self.stats = OfferingStats()

    # when to look

    def hear(self, fact: facts.Fact) -> None:
        """A fact from the bus, in any order, once, twice or never."""
        if isinstance(fact, FREEING):
            self._dirty.add(fact.event_id)
            self._woken.set()

    async def sweep(self) -> int:
        """End offers whose time is over, then serve every event; how many offers were made."""
        await self.settle()
        made = 0
        for event_id in self._sales:
            made += await self.tend(event_id)
        return made

    async def heard(self) -> int:
        """Serve the events that facts told of."""
        dirty, self._dirty = self._dirty, set()
        known = dirty & set(self._sales)
        if not known:
            return 0
        try:
            await self.settle()
            return sum([await self.tend(event_id) for event_id in sorted(known)])
        except FrontrowError:
            self._dirty |= known
            raise

    async def run(self) -> None:
        """Serve what is heard at once and everything every few seconds, until cancelled."""
        pause_s, swept_at_us = self._every_s, 0
        while True:  # until cancelled
            try:
                if self._clock() - swept_at_us >= self._every_s * US_PER_S:
                    swept_at_us = self._clock()
                    await self.sweep()
                await self.heard()
                pause_s = self._every_s
            except FrontrowError:  # ledger or claim store away: longer pauses, up to a bound
                self.stats.failures += 1
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                await asyncio.sleep(min(pause_s, 1.0))
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()

    async def settle(self) -> int:
        """Offers that lapsed, or whose booking went on without them, get their end; lapsed seats are free."""
        count = 0
        for _ in range(SETTLES_A_SWEEP):
            ended = await self._ledger.waitlist.settle_offers(self._clock(), SETTLED_AT_ONCE)
            for offer in ended:
                self._dirty.add(offer.event_id)
                if offer.state is not OfferState.CLAIMED and offer.event_id in set(self._sales):
                    await self._held.freed(offer.event_id, offer.seats, offer.booking_id)
            count += len(ended)
            if len(ended) < SETTLED_AT_ONCE:
                break
        self.stats.settled += count
        return count

    # whom to offer what

    async def tend(self, event_id: str) -> int:
        """Offer the event's free seats to those next in line; how many offers were made."""
        sale, now_us = self._sales.get(event_id), self._clock()
        self.stats.looks += 1
        event = await self._ledger.catalogue.event(event_id)
        if event != sale.event:
            sale.update_event(event)
        if event.status not in SERVED or event.paused or not event.sale_starts_at_us <= now_us < event.sale_ends_at_us:
            return 0
        look = await self._ledger.waitlist.waitlist_look(event_id, now_us)
        if not look.waiting and event.status is EventStatus.ON_SALE:
            return 0
        if look.taken >= sale.plan.size:
            await self._shift(sale, EventStatus.SOLD_OUT)
            return 0
        pool = await self._pool(sale, now_us)
        made, seen_all = await self._serve(sale, pool, now_us) if look.waiting else (0, True)
        if not pool.free:
            await self._shift(sale, EventStatus.SOLD_OUT)
        elif seen_all:
            await self._shift(sale, EventStatus.ON_SALE)
        return made

    async def _pool(self, sale: Sale, now_us: int) -> Pool:
        states = await free_seats(self._ledger, sale, now_us)
        free = [seat for seat, state in enumerate(states) if not state]
        last = await self._ledger.waitlist.last_fans(sale.event.id, free)
        return Pool(sale.plan, sale.layouts, sale.section_masks, (s for s, state in enumerate(states) if state), last)

    async def _serve(self, sale: Sale, pool: Pool, now_us: int) -> tuple[int, bool]:
        """Offers in the order of the line; whether the whole line was seen with what is left in the pool."""
        made, skipped = 0, set[str]()
        for _ in range(ROUNDS):
            place = self._places.pop(sale.event.id, FRONT)
            whole, refused = place == FRONT, 0
            for _ in range(PAGES_A_ROUND):
                sections = pool.free_by_section()
                page = (
                    await self._ledger.waitlist.waiting_page(sale.event.id, sections, place, PAGE) if sections else []
                )
                given = assign((entry for entry in page if entry.id not in skipped), pool)
                won = await self._offer_all(sale, given, pool, skipped, now_us)
                made, refused = made + won, refused + len(given) - won
                if len(page) < PAGE:
                    break
                place = (page[-1].rank, page[-1].number)
            else:
                self._places[sale.event.id] = place
                return made, False
            if not refused and whole:
                return made, True
        return made, False

    async def _offer_all(
        self, sale: Sale, given: Sequence[tuple[Entry, tuple[int, ...]]], pool: Pool, skipped: set[str], now_us: int
    ) -> int:
        """Claim, then have the ledger write holds and offers, all at once; the refused free their seats in the pool."""
        news = [self._new(sale, entry, seats, now_us) for entry, seats in given]
        claims = await asyncio.gather(*(self._claim(new.hold) for new in news), return_exceptions=True)
        lost = next((error for error in claims if isinstance(error, BaseException)), None)
        if lost is not None:  # what was claimed stays so until the next look, which asks under the same ids
            raise lost
        claimed = [new for new, answer in zip(news, claims, strict=True) if isinstance(answer, Claimed)]
        made = dict(zip([new.id for new in claimed], await self._ledger.waitlist.make_offers(claimed), strict=True))
        won = 0
        for (entry, seats), new, claim in zip(given, news, claims, strict=True):
            answer = made.get(new.id)
            if isinstance(answer, Offer):
                won += 1
                await self._offered(sale, new, answer)
                continue
            taken: set[int] = set()
            if isinstance(claim, ClaimRefused):
                taken = {seat.seat for seat in claim.taken} or set(seats)
            elif isinstance(answer, SeatsTaken):
                taken = set(answer.seats)
            if answer is not None:
                await self._claims.release(sale.event.id, seats, new.hold.booking_id)
            if not taken:  # the entry is the reason: gone, or at its cap
                skipped.add(entry.id)
            self.stats.refused += 1
            pool.free_again(seat for seat in seats if seat not in taken)
        self.stats.offered += won
        return won

    def _new(self, sale: Sale, entry: Entry, seats: tuple[int, ...], now_us: int) -> NewOffer:
        offer_id, booking_id = entry.next_offer_ids()
        prices, event = sale.prices_minor(seats), sale.event
        hold = NewHold(
            booking_id, event.id, entry.fan, seats, now_us, now_us + self._offer_us, sum(prices), event.currency,
            prices, event.max_per_person, offer_id,
        )  # fmt: skip
        return NewOffer(offer_id, entry.id, hold)

    async def _claim(self, hold: NewHold) -> Claimed | ClaimRefused:
        wish = SeatClaim(hold.event_id, hold.seats, hold.fan, hold.booking_id, hold.expires_at_us)
        return await self._claims.claim(wish, hold.now_us)

    async def _offered(self, sale: Sale, new: NewOffer, offer: Offer) -> None:
        """Map and claim store follow the ledger."""
        extra = [seat for seat in new.hold.seats if seat not in offer.seats]
        if extra:  # another server was quicker with other seats
            await self._claims.release(offer.event_id, extra, offer.booking_id)
        sale.seats.mark_taken(offer.seats, offer.fan, offer.expires_at_us, new.hold.now_us)
        if self._on_change is not None:
            self._on_change(offer.event_id, offer.seats)

    async def _shift(self, sale: Sale, to: EventStatus) -> None:
        """Sold out or on sale again, if it is not so already."""
        if sale.event.status is not to:
            event = await self._ledger.waitlist.shift_event(sale.event.id, sale.event.status, to, self._clock())
            if event is not None:
                sale.update_event(event)
