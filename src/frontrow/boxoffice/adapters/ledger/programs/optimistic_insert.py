"""Hope in a batch of holds: that nobody has the seats it takes, as nearly always behind a claim store (ADR 0045).

A hopeful batch neither looks before it takes nor can undo a single statement. When a unique index objects, the store
rolls the whole transaction back and runs it again carefully.
"""

from typing import Final

CAREFUL_BATCHES: Final = 32  # after a seat was in the way, so many batches look first


class HopeLost(Exception):
    """A unique index objected to a hopeful statement; its transaction must be rolled back and run carefully."""


class Hopes:
    """A store's memory of whether seats were in the way lately; `careful` counts the batches that still look first."""

    __slots__ = ("careful",)

    def __init__(self) -> None:
        self.careful = 0

    def lost(self) -> None:
        """A seat was in the way."""
        self.careful = CAREFUL_BATCHES
