"""An organiser's figures as values, and their computation from the ledger's sums. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.organiser.model.csv_cells import amount_cell, to_csv
from frontrow.boxoffice.seats.model.venues import Plan
from frontrow.core.clock import US_PER_S

ENDED_WELL: Final = frozenset({"captured", "authorised", "capturing"})
ENDED_BADLY: Final = frozenset({"declined", "voided", "lapsed"})
MAX_BUCKETS: Final = 1_000  # of a series
# the forecast: minutes that are looked at, that make the pace, and what is needed to say anything at all
MINUTE_US: Final = 60 * US_PER_S
FORECAST_MINUTES: Final = 15
PACE_MINUTES: Final = 5
MIN_MINUTES: Final = 2
MIN_BOOKINGS: Final = 20
LIKELY_DEVIATIONS: Final = 1.64  # nine times in ten
MAX_SPREAD: Final = 3.0  # the latest answer may be three times as far away as the expected one


class Group(msgspec.Struct, frozen=True):
    """Seats of a section, of a price tier, or of the whole event."""

    name: str
    seats: int
    free: int
    held: int
    sold: int
    withheld: int
    sold_minor: int = 0


class Amount(msgspec.Struct, frozen=True):
    """Money in one currency: captured, refunded (or owed), kept as refund fees, and what is left."""

    currency: str
    captured_minor: int
    refunded_minor: int
    refunds_open_minor: int
    fees_kept_minor: int

    @property
    def net_minor(self) -> int:
        return self.captured_minor - self.refunded_minor - self.refunds_open_minor


class States(msgspec.Struct, frozen=True):
    """Bookings by state."""

    held: int = 0
    paying: int = 0
    confirmed: int = 0
    expired: int = 0
    cancelled: int = 0
    refunded: int = 0

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> "States":
        found: dict[str, int] = {}
        for row in rows:
            found[row[0]] = found.get(row[0], 0) + int(row[2])
        return cls(**found)

    @property
    def total(self) -> int:
        return sum(getattr(self, name) for name in self.__struct_fields__)


class RoomFigures(msgspec.Struct, frozen=True):
    """Figures of the waiting room."""

    phase: str
    joined: int
    admitted: int
    waiting: int
    active: int
    admitted_per_s: float
    rate_per_s: int = 0  # the limits that hold now, whoever set them
    capacity: int = 0


class Percentiles(msgspec.Struct, frozen=True):
    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class Forecast(msgspec.Struct, frozen=True):
    """When the last seat would be sold if people went on buying as in the last minutes, and how sure that is."""

    sold_out_at_us: int
    earliest_us: int
    latest_us: int


class Step(msgspec.Struct, frozen=True):
    """A step of the funnel to the ticket, and how many people reached it."""

    name: str
    count: int


class Bucket(msgspec.Struct, frozen=True):
    """One step of the series, starting at `at_us`."""

    at_us: int
    holds: int
    seats_held: int
    sales: int
    seats_sold: int
    sold_minor: int
    refunds: int
    refunded_minor: int


class EventFigures(msgspec.Struct, frozen=True):
    """Everything about one event at one moment."""

    event_id: str
    at_us: int
    seat_count: int
    seats: Group
    sections: list[Group]
    tiers: list[Group]
    bookings: States
    money: list[Amount]
    payment_success: float | None
    holds_per_s: float
    sales_per_s: float
    room: RoomFigures | None
    funnel: list[Step]
    latency: dict[str, Percentiles]
    forecast: Forecast | None = None
    besides_minor: int = 0  # what sold bookings are worth besides their seats: add-ons and fees per booking


class LiveFigures(msgspec.Struct, frozen=True):
    """One frame of the live view. The next frame counts from `fence`. Seats, sections, tiers and the room are of one
    moment (`at_us`), so they add up. Money (in `tiers` too), payments, latency and the forecast come from the exact
    figures and are a few seconds older (`whole_at_us`)."""

    event_id: str
    at_us: int
    status: str
    paused: bool
    seats: Group
    sections: list[Group]
    holds_per_s: float
    seats_sold_per_s: float
    room: RoomFigures | None
    fence: int
    whole_at_us: int = 0
    money: list[Amount] = []
    payment_success: float | None = None
    latency: dict[str, Percentiles] = {}
    tiers: list[Group] = []
    forecast: Forecast | None = None


def runs_of(plan: Plan) -> list[tuple[str, str, int]]:
    """(section, tier, first seat) of every run of adjacent seats in one section and tier."""
    runs: list[tuple[str, str, int]] = []
    for section, base in zip(plan.sections, plan.bases, strict=True):
        seats = plan.seats[base : base + section.size]
        for at, seat in enumerate(seats):
            if at == 0 or seat.tier != seats[at - 1].tier:
                runs.append((section.id, seat.tier, base + at))
    return runs


def groups(plan: Plan, event: Event, taken: Sequence[Sequence[Any]]) -> tuple[list[Group], list[Group]]:
    """Seats by section and by tier from (section, tier, sold?, seats, price) sums."""
    parts = [(section.id, section.size) for section in plan.sections]
    sections = _grouped(parts, taken, 0, _kept_sections(plan, event))
    sizes: dict[str, int] = dict.fromkeys(plan.tiers, 0)
    for kind, count in _kind_counts(plan).items():
        sizes[kind] += count
    kept: dict[str, int] = {}
    for seat in event.withheld:
        kept[plan.seats[seat].tier] = kept.get(plan.seats[seat].tier, 0) + 1
    return sections, _grouped(list(sizes.items()), taken, 1, kept)


def _kind_counts(plan: Plan) -> dict[str, int]:
    """Seats per tier, counted over bytes."""
    found: dict[str, int] = {}
    for number, (tier, _) in enumerate(plan.kinds):
        found[tier] = found.get(tier, 0) + plan.seat_kinds.count(number)
    return found


def _kept_sections(plan: Plan, event: Event) -> dict[str, int]:
    kept: dict[str, int] = {}
    for seat in event.withheld:
        name = plan.sections[plan.section_at(seat)].id
        kept[name] = kept.get(name, 0) + 1
    return kept


def _grouped(
    sizes: Sequence[tuple[str, int]], taken: Sequence[Sequence[Any]], column: int, kept: Mapping[str, int]
) -> list[Group]:
    sums: dict[str, list[int]] = {name: [0, 0, 0] for name, _ in sizes}
    for row in taken:
        entry = sums[row[column]]
        entry[1 if row[2] else 0] += int(row[3])
        entry[2] += int(row[4]) if row[2] else 0
    found = []
    for name, size in sizes:
        held, sold, minor = sums[name]
        withheld = min(kept.get(name, 0), size - held - sold)  # sold before it was withheld: sold
        found.append(Group(name, size, size - held - sold - withheld, held, sold, withheld, minor))
    return found


def counted(parts: Sequence[Group]) -> Group:
    """The sum of all groups."""
    names = ("seats", "free", "held", "sold", "withheld", "sold_minor")
    return Group("", *(sum(getattr(part, name) for part in parts) for name in names))


def besides_seats(bookings: Sequence[Sequence[Any]], currency: str, tiers: Sequence[Group]) -> int:
    """What sold bookings are worth besides their seats, from (state, currency, count, seats, amount) sums."""
    sold = sum(int(row[4] or 0) for row in bookings if row[0] == "confirmed" and row[1] == currency)
    return max(0, sold - sum(tier.sold_minor for tier in tiers))


def money(payments: Sequence[Sequence[Any]], refunds: Sequence[Sequence[Any]]) -> list[Amount]:
    """Totals by currency, from (state, currency, count, amount, …) sums."""
    captured: dict[str, int] = {}
    done: dict[str, int] = {}
    owed: dict[str, int] = {}
    fees: dict[str, int] = {}
    for state, currency, _, amount, *_ in payments:
        if state == "captured":
            captured[currency] = captured.get(currency, 0) + int(amount)
    for state, currency, _, amount, fee in refunds:
        book = done if state == "done" else owed if state not in ("failed", "moot") else {}
        book[currency] = book.get(currency, 0) + int(amount)
        fees[currency] = fees.get(currency, 0) + (int(fee) if state == "done" else 0)
    currencies = sorted({*captured, *done, *owed, *fees})
    return [
        Amount(one, captured.get(one, 0), done.get(one, 0), owed.get(one, 0), fees.get(one, 0)) for one in currencies
    ]


def payment_success(payments: Sequence[Sequence[Any]]) -> float | None:
    """The share of finished payments that succeeded; None before the first one finished."""
    well = sum(int(row[2]) for row in payments if row[0] in ENDED_WELL)
    badly = sum(int(row[2]) for row in payments if row[0] in ENDED_BADLY)
    return round(well / (well + badly), 4) if well + badly else None


def funnel(room: RoomFigures | None, states: States, payments: Sequence[Sequence[Any]]) -> list[Step]:
    """The funnel from the waiting room to the ticket."""
    steps = [Step("joined", room.joined), Step("admitted", room.admitted)] if room is not None else []
    paid_for = sum(int(row[4]) for row in payments)
    bought = states.confirmed + states.refunded
    return [*steps, Step("held", states.total), Step("payment_begun", paid_for), Step("confirmed", bought)]


def forecast_sold_out(minutes: Sequence[tuple[int, int]], left: int, now_us: int, until_us: int) -> Forecast | None:
    """The forecast from (bookings, seats) of each of the last minutes, oldest first, with `left` seats unsold.

    None when nobody can know: few bookings, a sale that has just begun or has come to a stand, or so much change that
    the answers lie far apart or after `until_us`. The range covers chance (bookings arrive independently, so `n` of
    them vary by about the root of `n`) and the trend (the pace of the last two minutes and of all of them).
    """
    first = next((at for at, (bookings, _) in enumerate(minutes) if bookings), len(minutes))
    known = minutes[first + 1 :]  # the sale began somewhere inside its first minute
    pace = known[-PACE_MINUTES:]
    bookings = sum(count for count, _ in pace)
    if left <= 0 or len(known) < MIN_MINUTES or bookings < MIN_BOOKINGS:
        return None
    rate = _seats_per_minute(pace)
    chance = LIKELY_DEVIATIONS / bookings**0.5
    rates = (rate * (1 - chance), rate * (1 + chance), _seats_per_minute(known[-2:]), _seats_per_minute(known))
    if min(rates) <= 0:
        return None
    expected, earliest, latest = (now_us + round(left / each * MINUTE_US) for each in (rate, max(rates), min(rates)))
    too_vague = latest - now_us > MAX_SPREAD * (expected - now_us)
    return None if too_vague or latest >= until_us else Forecast(expected, earliest, latest)


def _seats_per_minute(minutes: Sequence[tuple[int, int]]) -> float:
    return sum(seats for _, seats in minutes) / len(minutes)


def percentiles(rows: Sequence[Sequence[Any]]) -> Percentiles | None:
    """Percentiles from (total, place, microseconds) rows at 50, 95 and 99 percent."""
    if not rows:
        return None
    total = int(rows[0][0])
    at = {int(place): round(int(took_us) / 1000, 1) for _, place, took_us in rows}
    return Percentiles(total, *(at[(total * percent + 99) // 100] for percent in (50, 95, 99)))


def percentiles_of_buckets(bounds_s: Sequence[float], cumulative: Sequence[int]) -> Percentiles | None:
    """Percentiles from a Prometheus histogram: the bound of the bucket that each percentile falls into (the last bound
    if it is above all of them)."""
    total = cumulative[-1] if cumulative else 0
    if not total or not bounds_s:
        return None

    def at(percent: int) -> float:
        place = (total * percent + 99) // 100
        for bound_s, count in zip(bounds_s, cumulative, strict=False):
            if count >= place:
                return round(bound_s * 1000, 3)
        return round(bounds_s[-1] * 1000, 3)

    return Percentiles(total, at(50), at(95), at(99))


def figures_csv(figures: EventFigures, currency: str) -> str:
    """All figures as one table with rows of (group, name, figure, value). Amounts are in units of the currency."""
    rows: list[tuple[Any, ...]] = []
    for kind, parts in (("event", [figures.seats]), ("section", figures.sections), ("tier", figures.tiers)):
        for part in parts:
            names = ("seats", "free", "held", "sold", "withheld")
            rows += [(kind, part.name, name, getattr(part, name)) for name in names]
            rows += [(kind, part.name, "revenue", amount_cell(part.sold_minor, currency))]
    rows += [("bookings", "", name, getattr(figures.bookings, name)) for name in States.__struct_fields__]
    for amount in figures.money:
        rows += [
            ("money", amount.currency, name, amount_cell(getattr(amount, f"{name}_minor"), amount.currency))
            for name in ("captured", "refunded", "refunds_open", "fees_kept", "net")
        ]
    rows += [("funnel", step.name, "count", step.count) for step in figures.funnel]
    rows += [("speed", "", "holds_per_s", figures.holds_per_s), ("speed", "", "sales_per_s", figures.sales_per_s)]
    rows += [("payments", "", "success", "" if figures.payment_success is None else figures.payment_success)]
    return to_csv(("group", "name", "figure", "value"), rows)


def series_csv(buckets: Sequence[Bucket], currency: str) -> str:
    """The series as a table. Amounts are in units of the currency."""
    header = ("unix_s", "holds", "seats_held", "sales", "seats_sold", "sold", "refunds", "refunded", "currency")
    rows = [
        (
            one.at_us // US_PER_S,
            one.holds,
            one.seats_held,
            one.sales,
            one.seats_sold,
            amount_cell(one.sold_minor, currency),
            one.refunds,
            amount_cell(one.refunded_minor, currency),
            currency,
        )
        for one in buckets
    ]
    return to_csv(header, rows)
