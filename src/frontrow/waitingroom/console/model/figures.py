"""Figures of a room over time: what was read every few seconds, and what follows from it."""

import csv
import io
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

COLUMNS: Final = ("time", "waiting", "joined", "admitted", "active", "no_shows", "wait_s", "phase")


class Figure(msgspec.Struct, frozen=True):
    """A room at one moment. `joined`, `admitted` and `no_shows` only grow."""

    at_us: int
    waiting: int
    joined: int
    admitted: int
    active: int
    no_shows: int
    phase: str


def waits_s(figures: Sequence[Figure]) -> list[int | None]:
    """For each moment, how long those admitted last had waited: since the line first was as long as their number. None
    before anybody was admitted, and where the line grew before the first figure."""
    joined = [one.joined for one in figures]
    waits: list[int | None] = []
    for one in figures:
        at = bisect_left(joined, one.admitted)
        known = one.admitted > 0 and at < len(figures) and (at > 0 or joined[0] == 0)
        waits.append(max(0, one.at_us - figures[at].at_us) // 1_000_000 if known else None)
    return waits


class Summary(msgspec.Struct, frozen=True):
    """What a span of time adds up to."""

    joined: int
    admitted: int
    no_shows: int
    most_waiting: int
    median_wait_s: int | None
    longest_wait_s: int | None


def summary(figures: Sequence[Figure]) -> Summary:
    """The sum of these figures; waits are weighted by how many people were admitted with them."""
    if not figures:
        return Summary(0, 0, 0, 0, None, None)
    first, last = figures[0], figures[-1]
    weighted: list[tuple[int, int]] = []
    before = first.admitted
    for one, wait in zip(figures, waits_s(figures), strict=True):
        if wait is not None and one.admitted > before:
            weighted.append((wait, one.admitted - before))
        before = one.admitted
    return Summary(
        last.joined - first.joined,
        last.admitted - first.admitted,
        last.no_shows - first.no_shows,
        max(one.waiting for one in figures),
        _median(weighted),
        max((wait for wait, _ in weighted), default=None),
    )


def _median(weighted: list[tuple[int, int]]) -> int | None:
    half, seen = sum(count for _, count in weighted) / 2, 0
    for value, count in sorted(weighted):
        seen += count
        if seen >= half:
            return value
    return None


def as_csv(figures: Sequence[Figure]) -> str:
    """The figures as CSV, times in UTC. No value can be read as a formula by a spreadsheet: all are numbers or ours."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for one, wait in zip(figures, waits_s(figures), strict=True):
        at = datetime.fromtimestamp(one.at_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        wait_text = "" if wait is None else wait
        writer.writerow([at, one.waiting, one.joined, one.admitted, one.active, one.no_shows, wait_text, one.phase])
    return out.getvalue()
