"""Scans of tickets at the gates of a venue: in and out, which came twice, and how fast a gate's clock may be. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Refused

MAX_CLOCK_AHEAD_US: Final = 300 * US_PER_S  # how fast the clock of a gate's device may be


class Way(StrEnum):
    """Through a gate: in or out."""

    IN = "in"
    OUT = "out"


class Scan(msgspec.Struct, frozen=True):
    """One admission at one gate, or one exit. The gate makes the `id`, so submitting a scan twice is harmless.

    Gates also exchange the seat and its fence, so that an older ticket of the seat is refused.
    """

    id: str
    event_id: str
    ticket_id: str
    gate: str
    at_us: int
    seat_index: int = -1
    fence: int = 0
    way: Way = Way.IN


class DuplicateScan(msgspec.Struct, frozen=True):
    """A ticket that was admitted more than once, with all its scans, earliest first."""

    ticket_id: str
    scans: tuple[Scan, ...]


class ReentryNotAllowed(Refused):
    """The event does not let people come back, so nobody is scanned at the exit."""

    code = "reentry_not_allowed"


def order_scans(scans: Iterable[Scan]) -> list[Scan]:
    """The scans of one ticket, earliest first. The same scan twice counts once."""
    return sorted({scan.id: scan for scan in scans}.values(), key=lambda scan: (scan.at_us, scan.id))


def later_than(scans: Sequence[Scan], at_us: int) -> int:
    """The time of a new scan: after all recorded scans of its ticket. Gates' clocks differ, and are corrected.
    A browser's clock has milliseconds."""
    return max(at_us, max((scan.at_us + 1_000 for scan in scans), default=0))


def find_duplicates(scans: Sequence[Scan]) -> list[DuplicateScan]:
    """The tickets admitted while they were inside, in any order of the scans. The same scan twice counts once."""
    by_ticket: dict[str, list[Scan]] = {}
    for scan in scans:
        by_ticket.setdefault(scan.ticket_id, []).append(scan)
    found = []
    for ticket, known in sorted(by_ticket.items()):
        ordered = order_scans(known)
        if any(one.way is Way.IN and after.way is Way.IN for one, after in pairwise(ordered)):
            found.append(DuplicateScan(ticket, tuple(one for one in ordered if one.way is Way.IN)))
    return found


def correct_clock(at_us: int, now_us: int) -> int:
    """The time of a scan that a gate made offline and uploads at `now_us`. Its clock may be five minutes fast."""
    return min(at_us, now_us + MAX_CLOCK_AHEAD_US)
