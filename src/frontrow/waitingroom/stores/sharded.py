"""One store out of several (W11): shard `<event>.<n>` lives in store n, any other room in one chosen by its name.

With one store more, only a share of 1/(n+1) of the rooms moves, and those are rebuilt there from the audit. Knows
nothing about rooms but their names.
"""

from collections.abc import Callable, Sequence
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.ports import RoomStore
from frontrow.waitingroom.service.sharding import shard_of


class RoutedStore:
    """Implements `RoomStore` (and `Roster`, if its stores do): every method goes to the store of its room."""

    def __init__(self, stores: Sequence[RoomStore]) -> None:
        if not stores:
            raise ConfigError("a line is spread over at least one store")
        self._stores = tuple(stores)
        self.one_place_per_person = stores[0].one_place_per_person

    def store_of(self, event: str) -> RoomStore:
        """The store that a room lives in."""
        queue, _, number = event.rpartition(".")
        if queue and number.isdecimal():
            return self._stores[int(number) % len(self._stores)]
        return self._stores[shard_of(event, len(self._stores))]

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(event: str, *given: Any, **named: Any) -> Any:
            return getattr(self.store_of(event), method)(event, *given, **named)

        if method.startswith("_"):
            raise AttributeError(method)
        return call

    async def aclose(self) -> None:
        for store in self._stores:
            await store.aclose()
