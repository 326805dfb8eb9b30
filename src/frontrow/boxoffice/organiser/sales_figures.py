"""An organiser's figures (B13, B19): seats, bookings, money, latency, and the funnel from waiting room to ticket.

The ledger adds up in a few bounded statements; nothing here reads single bookings. Full figures are cached briefly, so
any number of viewers costs the ledger one read. A live frame is cheaper still: seats are counted in this server's map,
and holds since the last frame are counted by the fence. `room_of` and `speeds` provide what the waiting room and the
web server know.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.organiser.model.sales_figures import (
    FORECAST_MINUTES,
    MAX_BUCKETS,
    MINUTE_US,
    Bucket,
    EventFigures,
    Forecast,
    Group,
    LiveFigures,
    Percentiles,
    RoomFigures,
    States,
    besides_seats,
    counted,
    forecast_sold_out,
    funnel,
    groups,
    money,
    payment_success,
    percentiles,
    runs_of,
)
from frontrow.boxoffice.organiser.ports.figures import FiguresBook
from frontrow.boxoffice.request_reads import measured_reads, needs_newest, note_as_of
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput

CACHED_US: Final = 2 * US_PER_S
MAX_CACHED: Final = 64
LATENCY_SPAN_US: Final = 3600 * US_PER_S
MIN_STEP_S: Final = 1
DEFAULT_BUCKETS: Final = 120


PlanOf = Callable[[str], Awaitable[Plan]]  # by its hash
SeatsOf = Callable[[str], bytes | bytearray | None]  # the map's states of an event, if it is sold here
RoomOf = Callable[[str], RoomFigures | None]
SpeedsOf = Callable[[], Mapping[str, Percentiles]]


class SalesFigures:
    """Computes figures. `speeds` reports request latencies."""

    def __init__(
        self,
        book: FiguresBook,
        clock: Clock,
        plan_of: PlanOf,
        seats_of: SeatsOf,
        room_of: RoomOf,
        speeds: SpeedsOf = dict,
    ) -> None:
        self._book, self._clock = book, clock
        self._plan_of, self._seats_of, self._room_of = plan_of, seats_of, room_of
        self.speeds = speeds
        self._cache: dict[str, tuple[EventFigures, int]] = {}  # with the moment that a replica showed; 0: the newest
        self._runs: dict[str, list[tuple[str, str, int]]] = {}
        self._reading = asyncio.Lock()  # one read at a time; the others find it in the cache

    async def of(self, event: Event) -> EventFigures:
        """All figures of an event, at most two seconds old."""
        cached = self._fresh(event.id)
        if cached is not None:
            return cached
        async with self._reading:
            cached = self._fresh(event.id)
            if cached is None:
                with measured_reads() as reads:
                    cached = await self._read(event)
                if len(self._cache) >= MAX_CACHED:
                    self._cache.pop(next(iter(self._cache)))
                self._cache[event.id] = (cached, reads.as_of_us)
            return cached

    def _fresh(self, event_id: str) -> EventFigures | None:
        cached, as_of_us = self._cache.get(event_id, (None, 0))
        if cached is None or self._clock() - cached.at_us >= CACHED_US or (as_of_us and needs_newest()):
            return None
        note_as_of(as_of_us)
        return cached

    async def _read(self, event: Event) -> EventFigures:
        now_us, book = self._clock(), self._book
        plan = await self._plan_of(event.plan_hash)
        runs = self._runs_of(event.plan_hash, plan)
        sums = await book.taken_by_run(event.id, [first for _, _, first in runs], now_us)
        taken = [(*runs[int(row[0])][:2], *row[1:]) for row in sums]
        bookings = await book.bookings_by_state(event.id)
        states = States.of(bookings)
        payments = await book.payments_by_state(event.id)
        refunds = await book.refunds_by_state(event.id)
        times = percentiles(await book.purchase_times(event.id, now_us - LATENCY_SPAN_US))
        held = await book.over_time("held", event.id, now_us - MINUTE_US, now_us, MINUTE_US)
        minutes = await self._sold_minutes(event, now_us)
        sections, tiers = groups(plan, event, taken)
        room = self._room_of(event.id)
        speeds = {"hold_to_ticket": times, **self.speeds()} if times is not None else dict(self.speeds())
        return EventFigures(
            event.id,
            now_us,
            plan.size,
            counted(sections),
            sections,
            tiers,
            states,
            money(payments, refunds),
            payment_success(payments),
            _per_second(sum(int(row[1]) for row in held)),
            _per_second(minutes[-1][0]),
            room,
            funnel(room, states, payments),
            speeds,
            _forecast(event, counted(sections), minutes, now_us),
            besides_seats(bookings, event.currency, tiers),
        )

    async def _sold_minutes(self, event: Event, now_us: int) -> list[tuple[int, int]]:
        """(bookings, seats) sold in each of the last minutes, oldest first."""
        from_us = now_us - FORECAST_MINUTES * MINUTE_US
        rows = await self._book.over_time("sold", event.id, from_us, now_us, MINUTE_US)
        found = {int(row[0]): (int(row[1]), int(row[2])) for row in rows}
        return [found.get(minute, (0, 0)) for minute in range(FORECAST_MINUTES)]

    def _runs_of(self, plan_hash: str, plan: Plan) -> list[tuple[str, str, int]]:
        runs = self._runs.get(plan_hash)
        if runs is None:
            if len(self._runs) >= MAX_CACHED:
                self._runs.clear()
            runs = self._runs[plan_hash] = runs_of(plan)
        return runs

    async def series(self, event: Event, from_us: int = 0, to_us: int = 0, step_s: int = 0) -> list[Bucket]:
        """Holds, sales and refunds over time. Defaults: the whole sale, in about 120 steps."""
        first_us, last_us = await self._book.sold_span(event.id)
        from_us = from_us or first_us
        if not from_us:
            return []  # nothing has happened yet
        to_us = to_us or max(last_us, from_us) + 1
        if to_us <= from_us:
            raise InvalidInput("the span must end after it begins", param="until")
        step_us = (step_s or max(MIN_STEP_S, -(-(to_us - from_us) // (DEFAULT_BUCKETS * US_PER_S)))) * US_PER_S
        if to_us - from_us > MAX_BUCKETS * step_us:
            raise InvalidInput(f"a series has at most {MAX_BUCKETS} steps; make them longer", param="step_s")
        counts = [
            await self._book.over_time(what, event.id, from_us, to_us, step_us) for what in ("held", "sold", "refunded")
        ]
        held, sold, refunded = ({int(row[0]): row for row in rows} for rows in counts)
        zero = (0, 0, 0, 0)
        return [
            Bucket(
                from_us + at * step_us,
                *map(int, held.get(at, zero)[1:3]),
                *map(int, sold.get(at, zero)[1:4]),
                *map(int, refunded.get(at, zero)[1:3]),
            )
            for at in range(-(-(to_us - from_us) // step_us))
        ]

    async def live(self, event: Event, before: LiveFigures | None) -> LiveFigures:
        """The next live frame after `before`: one small query to the ledger, the rest from memory, in one go."""
        plan = await self._plan_of(event.plan_hash)
        if before is None:
            bookings, fence = 0, await self._book.newest_fence(event.id)
        else:
            bookings, _, fence = await self._book.held_since(event.id, before.fence)
        exact = await self.of(event) if self._seats_of(event.id) is None else None
        now_us, states = self._clock(), self._seats_of(event.id)  # nothing is awaited from here on: one moment
        if exact is None and states is not None:
            sections, tiers = _count_map(plan, self._runs_of(event.plan_hash, plan), states)
        else:
            exact = exact or await self.of(event)
            sections, tiers = exact.sections, exact.tiers
        whole = counted(sections)
        passed_us = max(1, now_us - before.at_us) if before is not None else 0
        sold_more = max(0, whole.sold - before.seats.sold) if before is not None else 0
        return LiveFigures(
            event.id,
            now_us,
            event.status.value,
            event.paused,
            whole,
            sections,
            round(bookings * US_PER_S / passed_us, 2) if passed_us else 0.0,
            round(sold_more * US_PER_S / passed_us, 2) if passed_us else 0.0,
            self._room_of(event.id),
            fence,
            tiers=tiers,
        )


def _per_second(in_a_minute: int) -> float:
    return round(in_a_minute / 60, 3)


def _forecast(event: Event, seats: Group, minutes: Sequence[tuple[int, int]], now_us: int) -> Forecast | None:
    """When the event is sold out at this pace, while it is being sold."""
    if event.paused or event.status is not EventStatus.ON_SALE:
        return None
    left = seats.seats - seats.withheld - seats.sold
    return forecast_sold_out(minutes, left, now_us, event.sale_ends_at_us)


def _count_map(
    plan: Plan, runs: Sequence[tuple[str, str, int]], states: bytes | bytearray
) -> tuple[list[Group], list[Group]]:
    """Seats by section and by tier as the map shows them. `bytes.count` does the counting, run by run."""
    ends = [first for _, _, first in runs[1:]] + [plan.size]
    sections: dict[str, list[int]] = {section.id: [0, 0, 0, 0] for section in plan.sections}
    tiers: dict[str, list[int]] = {tier: [0, 0, 0, 0] for tier in plan.tiers}
    for (section, tier, first), end in zip(runs, ends, strict=True):
        for state in range(len(sections[section])):
            seats = states.count(state, first, end)
            sections[section][state] += seats
            tiers[tier][state] += seats
    return [_group(*one) for one in sections.items()], [_group(*one) for one in tiers.items()]


def _group(name: str, counts: Sequence[int]) -> Group:
    free, held, sold, withheld = counts
    return Group(name, sum(counts), free, held, sold, withheld)
