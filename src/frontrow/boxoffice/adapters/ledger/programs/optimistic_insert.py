"""Optimistic insert of a batch of holds: assume that the seats are free, check only when the unique index objects.

Behind a claim store the seats are nearly always free (ADR 0045). An optimistic batch does not read before it inserts,
and it cannot undo a single statement. When a unique index objects, the store rolls the whole transaction back and runs
it again carefully.
"""

from typing import Final

CAREFUL_BATCHES: Final = 32  # number of batches that check first after a conflict


class ConflictDetected(Exception):
    """A unique index objected to an optimistic statement. Roll the transaction back and run it carefully."""


class ConflictHistory:
    """Whether a store has seen conflicts recently. `careful_batches` counts the batches that still check first."""

    __slots__ = ("careful_batches",)

    def __init__(self) -> None:
        self.careful_batches = 0

    def record_conflict(self) -> None:
        """A seat was taken although it looked free."""
        self.careful_batches = CAREFUL_BATCHES
