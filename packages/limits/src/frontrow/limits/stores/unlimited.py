"""A store that allows everything and counts nothing, for limiters that a test has switched off."""

from collections.abc import Sequence

from frontrow.limits.quota import Decision
from frontrow.limits.stores.protocol import QuotaSlot, StoreRequest, StoreResult


class UnlimitedStore:
    """Allows every request at once, with the whole quota left."""

    tag_parts = None

    def __init__(self, slots: Sequence[QuotaSlot]) -> None:
        self._slots = slots

    def decide(self, request: StoreRequest) -> StoreResult:
        slot = self._slots[request.slots[0]]
        return StoreResult(Decision(True, slot.rule.name, slot.quota.capacity, slot.quota.capacity, 0, 0), ())

    async def adecide(self, request: StoreRequest) -> StoreResult:
        return self.decide(request)

    def close(self) -> None:
        """Nothing is open."""

    async def aclose(self) -> None:
        """Nothing is open."""
