"""One interface over all backends: memory, Redis and SQL, blocking and asyncio. The contract suite runs over all."""

import asyncio
from collections.abc import Sequence
from typing import Any

from frontrow.core.clock import Clock
from frontrow.limits import Decision, Limiter, Quota, Reservation, Rule
from frontrow.limits.quota import ALGORITHMS

IN_MEMORY = ("memory", "pure")
SHARED = ("redis", "postgresql", "sqlite")
BACKENDS = (*IN_MEMORY, *SHARED, *(f"{kind}-async" for kind in SHARED))
T0_US = 1_700_000_000_000_000
S = 1_000_000

__all__ = ["ALGORITHMS", "BACKENDS", "T0_US", "Backend", "S"]


class Backend:
    """Makes limiters of one kind; every method answers as the blocking ones do."""

    def __init__(self, kind: str, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self._kind = kind
        self._url = url
        self._loop = loop
        self._open: list[Limiter] = []

    def limiter(self, rules: Quota | str | Rule | Sequence[Rule], clock: Clock | None = None, **more: Any) -> "Asker":
        if self._kind == "pure":
            more["compiled"] = False
        store = self._url
        limiter = (
            Limiter(rules, store=store, clock=clock, deadline_s=5.0, **more)
            if store != "memory://"
            else Limiter(rules, store=store, clock=clock, **more)
        )
        self._open.append(limiter)
        return Asker(limiter, self._loop if self._kind.endswith("-async") else None)

    def close(self) -> None:
        for limiter in self._open:
            self._loop.run_until_complete(limiter.aclose())


class Asker:
    """Blocking questions to a limiter, through its asyncio methods when a loop is given."""

    def __init__(self, limiter: Limiter, loop: asyncio.AbstractEventLoop | None) -> None:
        self.limiter = limiter
        self._loop = loop

    def check(self, *args: Any, **kwargs: Any) -> Decision:
        return self._run("check", *args, **kwargs)

    def peek(self, *args: Any, **kwargs: Any) -> Decision:
        return self._run("peek", *args, **kwargs)

    def refund(self, *args: Any, **kwargs: Any) -> Decision:
        return self._run("refund", *args, **kwargs)

    def reset(self, *args: Any, **kwargs: Any) -> Decision:
        return self._run("reset", *args, **kwargs)

    def reserve(self, *args: Any, **kwargs: Any) -> "Estimate":
        if self._loop is None:
            return Estimate(self.limiter.reserve(*args, **kwargs), None)
        return Estimate(self._loop.run_until_complete(self.limiter.areserve(*args, **kwargs)), self._loop)

    def acquire(self, *args: Any, **kwargs: Any) -> Decision:
        return self._run("acquire", *args, **kwargs)

    def _run(self, name: str, *args: Any, **kwargs: Any) -> Decision:
        if self._loop is None:
            decision = getattr(self.limiter, name)(*args, **kwargs)
        else:
            decision = self._loop.run_until_complete(getattr(self.limiter, "a" + name)(*args, **kwargs))
        assert isinstance(decision, Decision)
        return decision


class Estimate:
    """A reservation that is settled through the same backend."""

    def __init__(self, reservation: Reservation, loop: asyncio.AbstractEventLoop | None) -> None:
        self.reservation = reservation
        self._loop = loop

    def settle(self, *args: Any, **kwargs: Any) -> Decision:
        if self._loop is None:
            return self.reservation.settle(*args, **kwargs)
        return self._loop.run_until_complete(self.reservation.asettle(*args, **kwargs))
