"""Limiters for tests: the rules of your application over a store in memory, on a clock that the test moves."""

from frontrow.core.clock import Clock
from frontrow.limits import Limiter
from frontrow.limits.stores.memory import MemoryStore

__all__ = ["MemoryStore", "in_memory"]


def in_memory(limiter: Limiter, clock: Clock) -> Limiter:
    """A limiter with the rules of `limiter` and nothing counted yet. It never asks the store of `limiter`."""
    return Limiter(limiter.rules, store="memory://", clock=clock)
