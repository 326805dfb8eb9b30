"""Optimistic batches: assume that the seats are free and the payments unchanged, check only when the ledger objects.

Behind a claim store the seats are nearly always free, and a payment nearly always has one driver (ADR 0045). An
optimistic batch does not read before it writes, and it cannot undo a single statement. When a unique index objects or
a conditional update leaves a row out, the store rolls the whole transaction back and runs it again carefully.
"""

from typing import Final

CAREFUL_BATCHES: Final = 32  # number of batches that check first after a conflict of seats
CAREFUL_SAVES: Final = 4  # the same for payments: their conflicts are single second clicks


class ConflictDetected(Exception):
    """The ledger objected to an optimistic statement. Roll the transaction back and run it carefully."""


class ConflictHistory:
    """Whether a store has seen conflicts recently. It counts the batches of holds and of payments that check first."""

    __slots__ = ("careful_batches", "careful_saves")

    def __init__(self) -> None:
        self.careful_batches = 0
        self.careful_saves = 0

    def record_conflict(self) -> None:
        """A seat was taken although it looked free."""
        self.careful_batches = CAREFUL_BATCHES

    def may_save_at_once(self) -> bool:
        """Whether this batch of payments need not be read first; a careful one is counted."""
        if not self.careful_saves:
            return True
        self.careful_saves -= 1
        return False

    def save_conflict(self) -> ConflictDetected:
        """A payment or its booking was not as its driver knew it. The error to raise."""
        self.careful_saves = CAREFUL_SAVES
        return ConflictDetected()
