"""The events on sale on this server: each with its plan, prices, layouts and what is believed of its seats.

A `Sale` is made once an event and refreshed when the organiser changes it; everything a hold needs to be checked and
priced is looked up in it without asking anybody.
"""

from collections.abc import Iterator, Sequence

from frontrow.boxoffice.holds.seat_cache import TRUST_US, Availability
from frontrow.boxoffice.model.best_seats import SectionLayout, layouts, lonely_left, lonely_rule_applies
from frontrow.boxoffice.model.events import Event, EventStatus
from frontrow.boxoffice.model.holds import SeatsTaken
from frontrow.boxoffice.model.prices import quote
from frontrow.boxoffice.model.seats import MAX_SEATS_A_REQUEST, Wish, check_seats, masks_for
from frontrow.boxoffice.model.venues import Plan
from frontrow.core.errors import NotFound

MAX_MASKS = 256


def on_sale(event: Event, now_us: int) -> bool:
    """Whether `check_on_sale` has nothing to say."""
    return (
        event.status is EventStatus.ON_SALE and not event.paused and event.opens_at_us <= now_us < event.sale_ends_at_us
    )


class Sale:
    """One event on sale."""

    def __init__(self, event: Event, plan: Plan, *, trust_us: int = TRUST_US) -> None:
        self.event, self.plan = event, plan
        self.layouts: tuple[SectionLayout, ...] = layouts(plan)
        self.seats = Availability(plan.size, trust_us=trust_us, withheld=event.withheld)
        self.hold_us = event.hold_ttl_s * 1_000_000
        self.refusals: dict[int, SeatsTaken] = {}  # ready answers, at most one a seat
        self.index_of = {seat_id: index for index, seat_id in enumerate(plan.seat_ids)}
        self._run_of = self._runs_by_seat()
        self._masks: dict[Wish, list[tuple[int, bytes]]] = {}
        self._price: list[int] = []
        self.changed(event)

    def changed(self, event: Event) -> None:
        """The organiser changed the event (not its plan)."""
        kept = self.event.withheld - event.withheld
        self.event = event
        for seat in kept:
            self.seats.states[seat] = 0
        self.seats.withhold(event.withheld)
        self.hold_us = event.hold_ttl_s * 1_000_000
        prices = {tier.key: tier.price.minor for tier in event.tiers}
        self._price = [prices[seat.tier] for seat in self.plan.seats]
        self._masks.clear()

    def indexes(self, seat_ids: Sequence[str]) -> list[int] | None:
        """The seats' indexes; None when one is unknown, so that the careful check can say which."""
        try:
            return [self.index_of[seat_id] for seat_id in seat_ids]
        except KeyError:
            return None

    def plain(self, seat_ids: Sequence[str]) -> list[int]:
        """The seats' indexes, rising, by the quick road if nothing can be wrong; else by the one that explains."""
        if len(seat_ids) == 1:
            seat = self.index_of.get(seat_ids[0])
            if seat is not None and seat not in self.event.withheld and self.event.max_per_person > 0:
                return [seat]
        seats = self.indexes(seat_ids)
        if (
            not seats
            or len(seats) > min(self.event.max_per_person, MAX_SEATS_A_REQUEST)
            or not self.event.withheld.isdisjoint(seats)
            or (len(seats) > 1 and len(set(seats)) != len(seats))
        ):
            return check_seats(self.plan, self.event, seat_ids)
        seats.sort()
        return seats

    def prices_minor(self, seats: Sequence[int]) -> tuple[int, ...]:
        """What each seat costs, its share of the fees included."""
        if not self.event.fees:
            return tuple([self._price[seat] for seat in seats])
        return tuple(total.minor for total in quote(self.plan, self.event, seats).seat_totals())

    def masks(self, wish: Wish) -> list[tuple[int, bytes]]:
        """The sections that can serve the wish, best first, with their masks; remembered, as crowds wish alike."""
        found = self._masks.get(wish)
        if found is None:
            if len(self._masks) >= MAX_MASKS:
                self._masks.clear()
            found = self._masks[wish] = masks_for(self.plan, self.layouts, self.event, wish)
        return found

    def lonely(self, seats: Sequence[int]) -> tuple[list[int], list[int]]:
        """Seats that the choice would leave alone, and the seats whose states led to that, by what is believed."""
        percent = self.event.lonely_rule_until_percent
        if not lonely_rule_applies(percent, self.seats.taken, self.plan.size):
            return [], []
        by_section: dict[int, list[int]] = {}
        for seat in seats:
            by_section.setdefault(self.plan.section_at(seat), []).append(seat)
        alone: list[int] = []
        looked: list[int] = []
        for number, own in by_section.items():
            layout = self.layouts[number]
            if not layout.is_area:
                runs = tuple({run: None for seat in own for run in (layout.runs[self._run_of[seat]],)})
                narrow = SectionLayout(layout.id, layout.base, layout.size, False, runs)
                states = self.seats.states[layout.base : layout.base + layout.size]
                alone += [layout.base + at for at in lonely_left(narrow, states, [s - layout.base for s in own])]
                looked += [layout.base + at for run in runs for at in range(run.offset, run.offset + run.length)]
        return alone, sorted(looked)

    def _runs_by_seat(self) -> list[int]:
        run_of = [0] * self.plan.size
        for layout in self.layouts:
            for number, run in enumerate(layout.runs):
                for at in range(run.offset, run.offset + run.length):
                    run_of[layout.base + at] = number
        return run_of


class Sales:
    """All sales this server knows, by event id."""

    def __init__(self) -> None:
        self._sales: dict[str, Sale] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sales))

    def open(self, event: Event, plan: Plan, *, trust_us: int = TRUST_US) -> Sale:
        """Begin to sell, or take over a change of, an event."""
        known = self._sales.get(event.id)
        if known is not None and known.plan == plan:
            known.changed(event)
            return known
        sale = self._sales[event.id] = Sale(event, plan, trust_us=trust_us)
        return sale

    def close(self, event_id: str) -> None:
        self._sales.pop(event_id, None)

    def get(self, event_id: str) -> Sale:
        """The sale, or NotFound."""
        try:
            return self._sales[event_id]
        except KeyError:
            raise NotFound(f"event {event_id[:60]!r} is not sold here", event=event_id[:60]) from None
