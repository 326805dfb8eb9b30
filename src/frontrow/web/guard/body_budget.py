"""How many bytes of large request bodies a process holds at once.

A body is in memory while it arrives and until its answer. A thousand connections that each send most of a megabyte,
slowly, would take a gigabyte. Small bodies, as every fan sends them, are not counted. Large ones are, and together they
have `MAX_BODIES_BYTES`; those of one address half of it. A body that finds no room gets 503.
"""

from collections.abc import Callable
from typing import Final

SMALL_BODY_BYTES: Final = 16 * 1024
MAX_BODIES_BYTES: Final = 64 * 1024 * 1024  # four imports of the largest plan


class BodyBudget:
    """What is held now. `is_free` says which addresses may have all of it, because they carry other people."""

    def __init__(self, is_free: Callable[[str], bool], most_bytes: int = MAX_BODIES_BYTES) -> None:
        self._is_free, self._most_bytes = is_free, most_bytes
        self._held: dict[str, int] = {}
        self.held_bytes = 0

    def take(self, address: str, size: int) -> bool:
        """Whether there is room for so many bytes more of this address; then they are held."""
        own = self._held.get(address, 0) + size
        if self.held_bytes + size > self._most_bytes:
            return False
        if own > self._most_bytes // 2 and not self._is_free(address):
            return False
        self._held[address] = own
        self.held_bytes += size
        return True

    def give_back(self, address: str, size: int) -> None:
        self.held_bytes -= size
        left = self._held.get(address, 0) - size
        if left > 0:
            self._held[address] = left
        else:
            self._held.pop(address, None)
