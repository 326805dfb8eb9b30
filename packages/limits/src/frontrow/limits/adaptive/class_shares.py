"""Which classes of requests find room: the higher a class, the more of the limit it may fill.

Classes are numbered from the one that is shed first. Each has a share of the limit up to which it is admitted, counting
all requests in flight. With the shares 0.5, 0.8 and 1 the top class always finds the last fifth of the limit free of
others. Pressure sheds whole classes from the bottom, and a part of the class at the edge.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

CLASSES: Final[Mapping[str, float]] = MappingProxyType({"background": 0.5, "normal": 0.8, "critical": 1.0})


class ClassShares:
    """Decides by class. Not safe for threads: its owner has the lock, or is used by one event loop alone."""

    __slots__ = ("_carry", "_shares", "bounds")

    def __init__(self, shares: Sequence[float], limit: float) -> None:
        self._shares = tuple(shares)
        self._carry = [0.0] * len(self._shares)
        self.bounds: list[float] = []  # by class: with so many in flight it is shed
        self.resize(limit)

    def resize(self, limit: float) -> None:
        """Take a new limit."""
        self.bounds = [share * limit for share in self._shares]

    def share_of(self, rank: int) -> float:
        return self._shares[rank]

    def admits(self, rank: int, in_flight: int, pressure: float) -> bool:
        """Whether a request of this class is served, with so many in flight and this pressure."""
        if in_flight >= self.bounds[rank]:
            return False
        share = pressure - rank
        if share > 0:
            carry = self._carry[rank] + min(share, 1.0)
            if carry >= 1.0:
                self._carry[rank] = carry - 1.0
                return False
            self._carry[rank] = carry
        return True
