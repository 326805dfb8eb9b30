"""What a storm has seen: latencies, waits, refusals, outcomes, tickets. Records of several processes can be joined.

Latencies are in HdrHistograms, in microseconds from the moment a request was meant to be sent. So a server that makes
the storm wait cannot hide it: requests that could not even be sent count with their whole delay.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hdrh.histogram import HdrHistogram

LONGEST_US = 3_600_000_000
DIGITS = 3
MAX_ODD = 20
LATENESS = "sent late"  # how late the storm itself was
WAIT = "wait"  # from asking for a place (or the opening, if later) to one's turn
ADDED = (
    "arrived",
    "bookings",
    "seats_bought",
    "seats_awaiting_tickets",
    "seats_left_held",
    "seats_unsure",
    "held_back",
)
PERCENTILES = (50.0, 90.0, 99.0, 99.9)


class FanOutcome(StrEnum):
    """How a fan's journey ended; each fan has exactly one."""

    BOUGHT = "bought"
    GAVE_BACK = "gave the seats back"  # where a storm does not pay
    DECLINED = "card declined"
    ABANDONED = "left a hold unpaid"
    LOOKED = "looked and left"
    IN_VAIN = "found no seats"
    GAVE_UP = "gave up in the line"
    TURNED_AWAY = "was refused to the end"
    FAILED = "got a wrong answer"
    CUT_OFF = "still there at the end"


@dataclass(slots=True)
class StormSecond:
    """One second of the storm."""

    arrived: int = 0
    requests: int = 0
    refused: int = 0
    admitted: int = 0
    entered: int = 0
    left: int = 0
    sold: int = 0
    total_us: int = 0
    slowest_us: int = 0

    def add(self, other: "StormSecond") -> None:
        for name in StormSecond.__slots__:
            if name != "slowest_us":
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest_us = max(self.slowest_us, other.slowest_us)


@dataclass(slots=True)
class StormRecord:
    """Everything that one process, or all of them together, have seen."""

    histograms: dict[str, HdrHistogram] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: dict[int, StormSecond] = field(default_factory=dict)
    tickets: dict[str, str] = field(default_factory=dict)  # ticket -> its seat
    tickets_twice: int = 0
    arrived: int = 0
    bookings: int = 0
    seats_bought: int = 0
    seats_awaiting_tickets: int = 0  # paid, and their tickets not fetched yet
    seats_left_held: int = 0  # in holds that nobody paid
    seats_unsure: int = 0  # in payments whose end no fan saw
    held_back: int = 0  # requests that waited for the storm's own bound
    odd: list[str] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)  # (arrival, wait), in seconds

    def second(self, now_s: float) -> StormSecond:
        return self.seconds.setdefault(max(0, int(now_s)), StormSecond())

    def record(self, name: str, seconds: float) -> None:
        self._histogram(name).record_value(min(LONGEST_US, max(1, round(seconds * 1e6))))

    def _histogram(self, name: str) -> HdrHistogram:
        found = self.histograms.get(name)
        if found is None:
            found = self.histograms[name] = HdrHistogram(1, LONGEST_US, DIGITS)
        return found

    def record_reply(self, step: str, meant_s: float, sent_s: float, done_s: float) -> None:
        """One response, at `done_s` of the storm."""
        self.record(step, done_s - meant_s)
        self.record(LATENESS, sent_s - meant_s)
        second = self.second(done_s)
        second.requests += 1
        took_us = round((done_s - meant_s) * 1e6)
        second.total_us += took_us
        second.slowest_us = max(second.slowest_us, took_us)

    def record_refusal(self, step: str, reason: str, now_s: float) -> None:
        self.refusals[f"{step}: {reason}"] += 1
        self.second(now_s).refused += 1

    def record_wait(self, arrived_s: float, wait_s: float) -> None:
        self.record(WAIT, wait_s)
        self.waits.append((round(arrived_s, 3), round(wait_s, 3)))

    def record_tickets(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self.tickets_twice += row["ticket"] in self.tickets
            self.tickets[row["ticket"]] = row["seat"]
        self.seats_awaiting_tickets -= len(rows)

    def record_odd(self, what: str) -> None:
        if len(self.odd) < MAX_ODD:
            self.odd.append(what[:300])

    def add(self, other: "StormRecord") -> None:
        """Join what another process has seen."""
        for name, histogram in other.histograms.items():
            self._histogram(name).add(histogram)
        self.refusals.update(other.refusals)
        self.outcomes.update(other.outcomes)
        for number, second in other.seconds.items():
            self.seconds.setdefault(number, StormSecond()).add(second)
        self.tickets_twice += other.tickets_twice + len(self.tickets.keys() & other.tickets.keys())
        self.tickets.update(other.tickets)
        for name in ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for line in other.odd:
            self.record_odd(line)
        self.waits += other.waits

    def latencies(self) -> dict[str, dict[str, float]]:
        """Milliseconds by step: how many, the percentiles, the slowest."""
        return {name: read_percentiles(histogram) for name, histogram in sorted(self.histograms.items())}


def pack_record(record: StormRecord, *, brief: bool = False) -> dict[str, Any]:
    """The record as plain values, for another process. `brief` leaves out what grows with every fan."""
    packed = {name: getattr(record, name) for name in StormRecord.__slots__ if name != "histograms"}
    if brief:
        packed |= {"tickets": {}, "waits": [], "seconds": {}}
    packed["histograms"] = {name: histogram.encode() for name, histogram in record.histograms.items()}
    return packed


def unpack_record(packed: dict[str, Any]) -> StormRecord:
    """The record that `pack_record` packed."""
    histograms = {name: HdrHistogram.decode(text) for name, text in packed["histograms"].items()}
    return StormRecord(**{**packed, "histograms": histograms})


def read_percentiles(histogram: HdrHistogram) -> dict[str, float]:
    """A histogram's percentiles in milliseconds."""
    row = {"count": float(histogram.get_total_count())}
    values = histogram.get_percentile_to_value_dict(PERCENTILES)
    row |= {f"p{percentile:g}_ms": values[percentile] / 1000 for percentile in PERCENTILES}
    row["max_ms"] = histogram.get_max_value() / 1000
    return row
