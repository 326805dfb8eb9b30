"""The hot routes of a running server: the rank of each and what is counted of it."""

from typing import Any, Final

from frontrow.web.fastpath.pending_replies import Handler
from frontrow.web.guard.overload import Rank, rank_of
from frontrow.web.guard.overload_watch import HOT, Watch
from frontrow.web.guard.route_metrics import Traffic

MAX_ROUTES: Final = 20_000


class HotRoute:
    """A hot route: its class of importance, its counts and its name."""

    __slots__ = ("counts", "name", "rank")

    def __init__(self, rank: Rank, name: str, traffic: Traffic) -> None:
        self.rank, self.name, self.counts = rank, name, traffic.of(name, HOT)


class RouteCounts:
    """Hot routes by method and address, found again without a search, and the gate that counts their requests."""

    def __init__(self, watch: Watch) -> None:
        self.gate, self._traffic = watch.gate, watch.traffic
        self.routes: dict[tuple[bytes, bytes], HotRoute] = {}
        self._shapes: dict[Any, HotRoute] = {}
        self.shed = HotRoute(Rank.BROWSE, "shed", watch.traffic)

    def add(self, key: tuple[bytes, bytes], handler: Handler) -> HotRoute:
        """Remember a hot route: each exact address, and each shape once for all its addresses."""
        shape = getattr(handler, "shape", None)
        found = self._shapes.get(shape) if shape is not None else None
        if found is not None:
            return found
        if len(self.routes) > MAX_ROUTES:
            self.routes.clear()
        inner = shape or handler
        name = getattr(getattr(inner, "func", inner), "__name__", "hot")
        found = HotRoute(rank_of(*key), name if name != "handle" else "room_stream", self._traffic)
        if shape is not None:
            self._shapes[shape] = found
        elif b"?" not in key[1]:
            self.routes[key] = found
        return found
