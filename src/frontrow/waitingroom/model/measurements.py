"""The leader's measurements of a room, which decide how many people it admits. Values only.

`no_shows` measures who claims an admitted place, `admission_rate` how fast people are admitted, `admission` the margin.
"""

import msgspec

from frontrow.waitingroom.model.inflow import Inflow

AGES = 18  # age classes: below 1 s, then doubling: [1, 2), [2, 4) … seconds
KNOCKING_SHARE = 0.005  # share of the capacity that may find the shop full, so that a gap is filled at once


class Measured(msgspec.Struct, frozen=True, omit_defaults=True):
    """The measurements of one room. The store keeps them as JSON (`RoomState.note`), so the next leader goes on."""

    at_us: int = 0
    ticks: int = 0
    exposure_s: tuple[float, ...] = (0.0,) * AGES
    claims: tuple[float, ...] = (0.0,) * AGES
    seen: dict[str, int] = {}  # slide number -> claims counted so far
    released: int = 0
    release_per_s: float = 0.0
    his: tuple[int, ...] = ()
    rate_milli: tuple[int, ...] = ()
    shown_milli: tuple[int, ...] = ()
    reason: str = ""
    reason_until_us: int = 0
    capacity: int = 0
    rate_per_s: int = 0
    credits: tuple[int, ...] = ()
    margin: float = KNOCKING_SHARE  # share of the capacity
    inflow: Inflow | None = None  # while the room holds a bound of the shop's latency


def read_note(note: str) -> Measured:
    """The measurements in a store's note; none if it is empty or of another version."""
    try:
        return msgspec.json.decode(note, type=Measured) if note else Measured()
    except msgspec.MsgspecError:
        return Measured()


def write_note(measured: Measured) -> str:
    """The note to store."""
    return msgspec.json.encode(measured).decode()
