"""Overload (F3): which requests are served when there are more than this process can answer, and how it notices.

The measure is the shortest delay of an interval, as in CoDel: of the event loop, and of responses that wait for a
store. A burst passes. A standing queue makes `pressure` grow, which sheds whole classes from the bottom (browse, join,
map, hold) and a part of the class at the edge. Paying is bounded only by the number of requests in flight. The rules
are those of `frontrow.limits.adaptive` (ADR 0196). This module is pure: time and delays are passed in. See
docs/overload.md.
"""

from enum import IntEnum
from typing import Final

from frontrow.limits.adaptive.class_shares import ClassShares
from frontrow.limits.adaptive.controllers import DelayPressure
from frontrow.limits.adaptive.standing_delay import StandingDelay
from frontrow.settings.overload import OverloadSettings


class Rank(IntEnum):
    """What is shed first has the lowest rank; EXEMPT is never shed."""

    BROWSE = 0
    JOIN = 1
    MAP = 2
    HOLD = 3
    PAY = 4
    EXEMPT = 5


SHARES: Final = (0.5, 0.6, 0.7, 0.85, 1.0, float("inf"))  # of the requests in flight, by rank
LEAST_ANSWERS: Final = 8
CROWD: Final = 16.0
HIGHEST: Final = float(Rank.PAY)  # at full pressure everything below PAY is shed
PRESSURE: Final = DelayPressure(HIGHEST)
_ROOM: Final = {
    b"/room/claim": Rank.HOLD,
    b"/room/renew": Rank.HOLD,
    b"/room/give-back": Rank.HOLD,
    b"/room/pass": Rank.HOLD,
    b"/room/heartbeat": Rank.HOLD,
    b"/room/visit": Rank.HOLD,
    b"/room/left": Rank.HOLD,
}
# the API and the pages that do the same
_PAYING: Final = (b"/v1/bookings/", b"/v1/webhooks/", b"/v1/door/", b"/bookings/", b"/checkout/", b"/door")
_HOLDING: Final = (b"/v1/organiser", b"/v1/offers/", b"/organiser", b"/offers/")
_PAGES_OF_EVENT: Final = {b"hold": Rank.HOLD, b"seats": Rank.MAP, b"enter": Rank.JOIN}


def rank_of(method: bytes, path: bytes) -> Rank:
    """The class of a request, from its method and path (a query may follow)."""
    if b"?" in path:
        path = path.partition(b"?")[0]
    if path.startswith(b"/v1/events/"):
        return _rank_of_event(method, path)
    if path.startswith(_PAYING):
        return Rank.MAP if path.endswith(b".pdf") else Rank.PAY  # a drawing can wait, and it costs more than a payment
    if path.startswith(_HOLDING):
        return Rank.HOLD
    if path.startswith(b"/events/"):
        return _PAGES_OF_EVENT.get(path.rpartition(b"/")[2], Rank.BROWSE)
    if path in (b"/healthz", b"/readyz", b"/metrics"):
        return Rank.EXEMPT
    return Rank.BROWSE


def _rank_of_event(method: bytes, path: bytes) -> Rank:
    rest = path[path.find(b"/", 11) :] if path.find(b"/", 11) > 0 else b""
    if rest == b"/holds":
        return Rank.HOLD if method == b"POST" else Rank.MAP
    if rest.startswith(b"/room/"):
        return _ROOM.get(rest, Rank.JOIN)
    if rest.startswith((b"/seats", b"/map/")):
        return Rank.MAP
    return Rank.BROWSE


class OverloadGate:
    """Decides for each request of this process whether it is served; keeps count."""

    __slots__ = (
        "_most_of_the_lowest",
        "_shares",
        "active",
        "admitted",
        "arrived",
        "connections",
        "in_flight",
        "lag",
        "late",
        "pressure",
        "settings",
        "shed",
        "turned_away",
        "wait",
    )

    def __init__(self, settings: OverloadSettings | None = None) -> None:
        self.settings = settings or OverloadSettings()
        self._shares = ClassShares(SHARES, self.settings.max_in_flight)
        self._most_of_the_lowest = self._shares.bounds[Rank.BROWSE]
        self.pressure = 0.0
        self.active = False  # False: the hot path has nothing to decide
        self.in_flight = self.connections = self.arrived = 0
        self.turned_away = self.late = 0
        self.admitted = [0] * len(Rank)
        self.shed = [0] * len(Rank)
        self.lag, self.wait = StandingDelay(), StandingDelay(LEAST_ANSWERS)

    def close_interval(self, crowd: float = CROWD) -> None:
        """Every 100 ms: more pressure while a queue stands, less when none does.

        `crowd` is how many requests came between two looks at the loop: a loop that is late without many of them was
        kept from running by something else on the machine, and shedding would help nobody.
        """
        lag = self.lag.close() * 1000 / self.settings.max_lag_ms if crowd >= CROWD else 0.0
        wait = self.wait.close() * 1000 / self.settings.max_wait_ms
        self.pressure = PRESSURE.next(self.pressure, max(lag, wait))
        self._update_active()

    def admits(self, rank: Rank) -> bool:
        """Whether a request of this class is served now."""
        if self._shares.admits(rank, self.in_flight, self.pressure):
            self.admitted[rank] += 1
            return True
        self.shed[rank] += 1
        return False

    def began(self) -> None:
        """A request is being answered and takes longer than a moment."""
        self.in_flight += 1
        if self.in_flight >= self._most_of_the_lowest:
            self.active = True

    def ended(self) -> None:
        self.in_flight -= 1
        if self.active:
            self._update_active()

    def _update_active(self) -> None:
        self.active = self.pressure > 0 or self.in_flight >= self._most_of_the_lowest
