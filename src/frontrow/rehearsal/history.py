"""Checks a history of seat holds: grants are ordered by fence and exclusive in real time, and nothing is granted twice.

An operation is one call: what was requested, when the call began and ended (the caller's clock, in microseconds), and
its outcome. Operations are added in any order and checked in one pass over the grants of each seat, sorted by fence:

- A fence is unique among bookings, and a booking has one fence.
- Fences follow real time: a grant that was answered before another was requested has the smaller fence.
- A seat is granted again only after the grant before has ended. A hold ends somewhere inside the release call or at its
  expiry, a confirmed one only by a refund. Nothing is both released and confirmed.

Overlaps that the recorded times cannot exclude count in the system's favour, so every reported violation is real.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

FOREVER_US = 2**62
MAX_REPORTED = 20


class OperationOutcome(IntEnum):
    """The outcome of a call."""

    GRANTED = 1  # a hold on the seats, with a fence and an expiry
    REFUSED = 2
    RELEASED = 3  # the hold with this fence was released by its owner
    CONFIRMED = 4  # the hold with this fence became a booking, which never ends by itself
    EXTENDED = 5  # the hold with this fence now ends at `expires_at_us`
    UNKNOWN = 6  # a release, cancellation or refund without a response: it may or may not have happened
    REFUNDED = 7  # the confirmed booking with this fence was refunded and its seats are free


class Operation(NamedTuple):
    """One call and its outcome. `fence` is 0 for a refusal."""

    began_us: int
    ended_us: int
    outcome: OperationOutcome
    seats: tuple[int, ...]
    fence: int = 0
    booking: int = 0
    expires_at_us: int = 0


@dataclass(slots=True)
class HistoryVerdict:
    """The result of the check."""

    operations: int = 0
    grants: int = 0
    refusals: int = 0
    confirmed: int = 0
    violations: list[str] = field(default_factory=list)
    violations_found: int = 0

    @property
    def holds(self) -> bool:
        return self.violations_found == 0

    def report(self, what: str) -> None:
        self.violations_found += 1
        if len(self.violations) < MAX_REPORTED:
            self.violations.append(what)


class History:
    """Collects operations compactly (arrays of integers), then checks them."""

    def __init__(self) -> None:
        self._verdict = HistoryVerdict()
        # One entry per granted seat: seat, fence, call began, call ended, expiry.
        self._grants = [array("q") for _ in range(5)]
        self._booking_of: dict[int, int] = {}
        self._released: dict[int, int] = {}  # fence -> when the first call began that ended it for certain
        self._maybe_ended: dict[int, int] = {}  # fence -> when the first call began that may have ended it
        self._refunded: dict[int, int] = {}
        self._confirmed: set[int] = set()
        self._extended: dict[int, int] = {}

    def add(self, operation: Operation) -> None:
        """Add one operation."""
        verdict = self._verdict
        verdict.operations += 1
        if operation.outcome is OperationOutcome.REFUSED:  # by far the most frequent
            verdict.refusals += 1
            return
        match operation.outcome:
            case OperationOutcome.GRANTED:
                self._granted(operation)
            case OperationOutcome.RELEASED:
                _earliest(self._released, operation)
                _earliest(self._maybe_ended, operation)
            case OperationOutcome.CONFIRMED:
                verdict.confirmed += 1
                self._confirmed.add(operation.fence)
            case OperationOutcome.REFUNDED:
                _earliest(self._refunded, operation)
            case OperationOutcome.UNKNOWN:
                _earliest(self._maybe_ended, operation)
            case OperationOutcome.EXTENDED:
                longest = max(self._extended.get(operation.fence, 0), operation.expires_at_us)
                self._extended[operation.fence] = longest

    def add_all(self, operations: Iterable[Operation]) -> None:
        for operation in operations:
            self.add(operation)

    def check(self) -> HistoryVerdict:
        """The verdict over everything added so far."""
        seats, fences, _, ended, expires = self._grants
        for fence in self._confirmed & self._released.keys():
            self._verdict.report(f"fence {fence} was both released and confirmed")
        order = sorted(range(len(seats)), key=fences.__getitem__)
        self._check_time_order(order)
        last: dict[int, int] = {}  # seat -> its grant with the highest fence so far
        for entry in order:
            seat = seats[entry]
            before = last.get(seat)
            last[seat] = entry
            if before is None or fences[before] == fences[entry]:
                continue
            over_us = self._over_us(fences[before], expires[before])
            if ended[entry] < over_us:  # even at the last possible moment the old hold was alive
                self._verdict.report(
                    f"seat {seat}: fence {fences[entry]} granted by {ended[entry]} us while fence {fences[before]} "
                    f"was alive until {'ever' if over_us == FOREVER_US else over_us}"
                )
        return self._verdict

    def _granted(self, operation: Operation) -> None:
        verdict = self._verdict
        verdict.grants += 1
        if operation.fence < 1:
            verdict.report(f"booking {operation.booking} was granted seats {operation.seats} without a fence")
        if self._booking_of.setdefault(operation.fence, operation.booking) != operation.booking:
            verdict.report(f"fence {operation.fence} was given to two bookings")
        row = (operation.fence, operation.began_us, operation.ended_us, operation.expires_at_us)
        for seat in operation.seats:
            self._grants[0].append(seat)
            for column, value in zip(self._grants[1:], row, strict=True):
                column.append(value)

    def _over_us(self, fence: int, expires_at_us: int) -> int:
        """The earliest time at which the hold or booking may have ended."""
        if fence in self._confirmed:
            return self._refunded.get(fence, FOREVER_US)
        return min(self._maybe_ended.get(fence, FOREVER_US), max(expires_at_us, self._extended.get(fence, 0)))

    def _check_time_order(self, order: list[int]) -> None:
        """No grant may have been answered before a grant with a smaller fence was requested."""
        _, fences, began, ended, _ = self._grants
        # In order of fences, no call may end before the latest begin of the calls with smaller fences.
        latest_began_us, latest_fence = -1, 0
        pending_began_us, pending_fence = -1, 0
        for entry in order:
            if fences[entry] != pending_fence:
                if pending_began_us > latest_began_us:
                    latest_began_us, latest_fence = pending_began_us, pending_fence
                pending_began_us, pending_fence = began[entry], fences[entry]
            if ended[entry] < latest_began_us:
                self._verdict.report(
                    f"fence {fences[entry]} was answered at {ended[entry]} us, before fence {latest_fence} "
                    f"was requested at {latest_began_us} us"
                )


def _earliest(times: dict[int, int], operation: Operation) -> None:
    times[operation.fence] = min(times.get(operation.fence, FOREVER_US), operation.began_us)


def read_lines(lines: Iterable[str]) -> Iterator[Operation]:
    """Operations from text lines of the form `began ended outcome fence booking expires seat,seat,…`."""
    for line in lines:
        if line.strip():
            began, ended, outcome, fence, booking, expires, seats = line.split()
            places = tuple(int(seat) for seat in seats.split(",")) if seats != "-" else ()
            yield Operation(
                int(began), int(ended), OperationOutcome[outcome], places, int(fence), int(booking), int(expires)
            )


def write_line(operation: Operation) -> str:
    """The line that `read_lines` reads."""
    seats = ",".join(map(str, operation.seats)) or "-"
    times = f"{operation.began_us} {operation.ended_us} {operation.outcome.name}"
    return f"{times} {operation.fence} {operation.booking} {operation.expires_at_us} {seats}"
