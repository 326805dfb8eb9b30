"""The events on sale on this server, each with its plan, prices, layouts and seat cache.

A `Sale` is built once per event and updated when the organiser changes the event. It holds everything needed to check
and price a hold, so no store is called.
"""

from collections.abc import Iterator, Sequence

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.holds.model.holds import SeatsTaken
from frontrow.boxoffice.holds.model.requested_seats import MAX_SEATS_PER_REQUEST, Wish, check_seats, masks_for
from frontrow.boxoffice.holds.seat_cache import TRUST_US, SeatCache
from frontrow.boxoffice.pricing.model.prices import PriceList, Quote, TierPrice
from frontrow.boxoffice.seats.model.best_seats import SectionLayout, find_lonely_seats, layouts, lonely_rule_applies
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.errors import NotFound

MAX_MASKS = 256  # cached wishes per event


def is_on_sale(event: Event, now_us: int) -> bool:
    """Whether `check_on_sale` would raise nothing."""
    return (
        event.status is EventStatus.ON_SALE and not event.paused and event.opens_at_us <= now_us < event.sale_ends_at_us
    )


class Sale:
    """One event on sale."""

    def __init__(self, event: Event, plan: Plan, *, trust_us: int = TRUST_US) -> None:
        self.event, self.plan = event, plan
        self.layouts: tuple[SectionLayout, ...] = layouts(plan)
        self.seats = SeatCache(plan.size, trust_us=trust_us, withheld=event.withheld)
        self.hold_us = event.hold_ttl_s * 1_000_000
        self.sold_from_us = self.sold_until_us = 0  # on sale between these; empty while it is paused
        self.refusals: dict[int, SeatsTaken] = {}  # shared refusals, at most one per seat
        self.index_of = plan.index_of
        self._run_of = plan.derive(_runs_by_seat)
        self._masks: dict[Wish, list[tuple[int, bytes]]] = {}
        self.prices = PriceList(event)
        self._tier_at: list[TierPrice] = []
        self.update_event(event)

    def update_event(self, event: Event) -> None:
        """Take over a change of the event by its organiser (not of its plan)."""
        no_longer_withheld = self.event.withheld - event.withheld
        self.event = event
        for seat in no_longer_withheld:
            self.seats.states[seat] = 0
        self.seats.withhold(event.withheld)
        self.hold_us = event.hold_ttl_s * 1_000_000
        self.sold_from_us = event.opens_at_us
        self.sold_until_us = event.sale_ends_at_us if is_on_sale(event, event.opens_at_us) else 0
        self.prices = PriceList(event)
        tiers = self.prices.tiers
        self._tier_at = [tiers[seat.tier] for seat in self.plan.seats]
        self._masks.clear()

    def find_indexes(self, seat_ids: Sequence[str]) -> list[int] | None:
        """The indexes of the seats, or None when one is unknown; `check_seats` then says which."""
        try:
            return [self.index_of[seat_id] for seat_id in seat_ids]
        except KeyError:
            return None

    def resolve_seats(self, seat_ids: Sequence[str]) -> list[int]:
        """The sorted indexes of the seats. `check_seats` runs, and explains, only when something may be wrong."""
        if len(seat_ids) == 1:
            seat = self.index_of.get(seat_ids[0])
            if seat is not None and seat not in self.event.withheld and self.event.max_per_person > 0:
                return [seat]
        seats = self.find_indexes(seat_ids)
        if (
            not seats
            or len(seats) > min(self.event.max_per_person, MAX_SEATS_PER_REQUEST)
            or not self.event.withheld.isdisjoint(seats)
            or (len(seats) > 1 and len(set(seats)) != len(seats))
        ):
            return check_seats(self.plan, self.event, seat_ids)
        seats.sort()
        return seats

    def quote(self, seats: Sequence[int]) -> Quote:
        """The price of these seats."""
        tier_at = self._tier_at
        return self.prices.quote([tier_at[seat] for seat in seats], seats)

    def section_masks(self, wish: Wish) -> list[tuple[int, bytes]]:
        """The sections that can serve the wish, best first, with their masks. Cached: most fans have the same wish."""
        masks = self._masks.get(wish)
        if masks is None:
            if len(self._masks) >= MAX_MASKS:
                self._masks.clear()
            masks = self._masks[wish] = masks_for(self.plan, self.layouts, self.event, wish)
        return masks

    def refusal_for(self, seats: Sequence[int]) -> SeatsTaken:
        """The refusal that names these seats. The refusal for a single seat is cached and shared, so never raise it."""
        if len(seats) != 1:
            return self.new_refusal(seats)
        refusal = self.refusals.get(seats[0])
        if refusal is None:
            refusal = self.refusals[seats[0]] = self.new_refusal(seats)
        return refusal

    def new_refusal(self, seats: Sequence[int]) -> SeatsTaken:
        """A refusal that may be raised. It names the seats by their ids."""
        refusal = SeatsTaken(self.event.id, seats)
        refusal.about["seats"] = [self.plan.seat_ids[seat] for seat in refusal.seats]
        return refusal

    def find_lonely(self, seats: Sequence[int], freed: Sequence[int] = ()) -> tuple[list[int], list[int]]:
        """Seats that the choice would leave as single free seats, by the cache, and the seats of the rows checked.

        `freed` are seats that the fan gives up for these.
        """
        percent = self.event.lonely_rule_until_percent
        if not lonely_rule_applies(percent, self.seats.taken, self.plan.size):
            return [], []
        by_section: dict[int, list[int]] = {}
        for seat in seats:
            by_section.setdefault(self.plan.section_at(seat), []).append(seat)
        lonely: list[int] = []
        checked: list[int] = []
        for number, own in by_section.items():
            layout = self.layouts[number]
            if not layout.is_area:
                runs = tuple({run: None for seat in own for run in (layout.runs[self._run_of[seat]],)})
                narrow = SectionLayout(layout.id, layout.base, layout.size, False, runs)
                states = self.seats.states[layout.base : layout.base + layout.size]
                for seat in freed:
                    if layout.base <= seat < layout.base + layout.size:
                        states[seat - layout.base] = 0
                lonely += [layout.base + at for at in find_lonely_seats(narrow, states, [s - layout.base for s in own])]
                checked += [layout.base + at for run in runs for at in range(run.offset, run.offset + run.length)]
        return lonely, sorted(checked)


def _runs_by_seat(plan: Plan) -> list[int]:
    """For each seat, the number of its run in its section."""
    run_of = [0] * plan.size
    for layout in layouts(plan):
        for number, run in enumerate(layout.runs):
            for at in range(run.offset, run.offset + run.length):
                run_of[layout.base + at] = number
    return run_of


class Sales:
    """All sales of this server, by event id."""

    def __init__(self) -> None:
        self._sales: dict[str, Sale] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sales))

    def open(self, event: Event, plan: Plan, *, trust_us: int = TRUST_US) -> Sale:
        """Begin to sell an event, or take over a change of it."""
        current = self._sales.get(event.id)
        if current is not None and current.plan == plan:
            current.update_event(event)
            return current
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
