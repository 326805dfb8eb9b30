"""Leases of callers: a share of a quota that was charged in advance, to be spent without asking again.

A lease is charged when it is taken. So all leases and checks together never exceed a quota in the window in which they
were charged. A caller may spend its units until the lease ends: within any one period, at most the units of leases that
were open at its start come on top. What is given back before the end is returned as far as it still counts (as for a
`Reservation`). What is not given back stays charged: a caller that dies costs others its share, never more.

`LeaseBook` remembers open leases, so that each is given back once. In memory for one process, in Redis for several.
"""

import asyncio
import base64
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from frontrow.core.errors import NotFound, Overloaded, Unavailable
from frontrow.core.redis_url import connect, disconnect
from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision

CONNECT_S = 1.0
MAX_LEASE_S: Final = 60.0  # how long a caller keeps its share, if the settings say nothing else
MAX_LEASE_UNITS: Final = 10_000
MAX_LEASES: Final = 100_000


class UnknownLease(NotFound):
    code = "unknown_lease"


class TooManyLeases(Overloaded):
    code = "too_many_leases"


class LeaseBookDown(Unavailable):
    code = "lease_book_down"


@dataclass(frozen=True, slots=True)
class Lease:
    """What was charged: to which rules and tiers, with which keys, how much, when, and what the store said then."""

    rules: tuple[tuple[str, str], ...]
    keys: tuple[StoreKey, ...]
    units: int
    charged_us: int
    decision: Decision
    quota: str = ""  # of the caller, in place of rules of the file

    def to_text(self) -> str:
        keys = [key if isinstance(key, str) else {"b": base64.b64encode(key).decode()} for key in self.keys]
        return json.dumps([self.rules, keys, self.units, self.charged_us, list(self.decision), self.quota])

    @classmethod
    def from_text(cls, text: str | bytes) -> "Lease":
        rules, keys, units, charged_us, decision, quota = json.loads(text)
        return cls(
            tuple((rule, tier) for rule, tier in rules),
            tuple(key if isinstance(key, str) else base64.b64decode(key["b"]) for key in keys),
            units,
            charged_us,
            Decision(*decision),
            quota,
        )


class LeaseBook(Protocol):
    """Remembers open leases until they end. `take` hands each out once."""

    async def put(self, lease: Lease, ttl_s: float) -> str:
        """Remember a lease for `ttl_s` seconds and return its id."""

    async def take(self, lease_id: str) -> Lease:
        """The lease, which is forgotten with this. `UnknownLease` if it ended or was taken."""

    async def aclose(self) -> None: ...


def new_lease_id() -> str:
    return f"lse_{secrets.token_urlsafe(16)}"


def _unknown(lease_id: str) -> UnknownLease:
    message = "this lease has ended or was given back already; its units stay as they are"
    return UnknownLease(message, param="lease", lease=lease_id[:64])


class MemoryLeaseBook:
    """The leases of one process."""

    def __init__(self, most: int, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._monotonic_s = monotonic_s
        self._open: OrderedDict[str, tuple[float, Lease]] = OrderedDict()

    async def put(self, lease: Lease, ttl_s: float) -> str:
        now_s = self._monotonic_s()
        if len(self._open) >= self._most:
            self._open = OrderedDict((name, row) for name, row in self._open.items() if row[0] > now_s)
        if len(self._open) >= self._most:
            raise TooManyLeases(f"{self._most} leases are open; give one back or wait", retry_after_s=1.0)
        lease_id = new_lease_id()
        self._open[lease_id] = (now_s + ttl_s, lease)
        return lease_id

    async def take(self, lease_id: str) -> Lease:
        ends_s, lease = self._open.pop(lease_id, (0.0, None))
        if lease is None or ends_s <= self._monotonic_s():
            raise _unknown(lease_id)
        return lease

    async def aclose(self) -> None:
        """Nothing to close."""


class RedisLeaseBook:
    """The leases of all processes at one Redis. Redis ends them by itself."""

    def __init__(self, url: str, prefix: str, deadline_s: float) -> None:
        self._url = url
        self._deadline_s = deadline_s
        self._prefix = prefix
        self._client: Any = None

    async def put(self, lease: Lease, ttl_s: float) -> str:
        lease_id = new_lease_id()
        await self._call("set", self._name(lease_id), lease.to_text(), px=max(1, round(1000 * ttl_s)))
        return lease_id

    async def take(self, lease_id: str) -> Lease:
        text = await self._call("getdel", self._name(lease_id))
        if text is None:
            raise _unknown(lease_id)
        return Lease.from_text(text)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await disconnect(client)

    def _name(self, lease_id: str) -> str:
        """No prefix contains `!`, so this is no key of a limiter."""
        return f"{self._prefix}!lease:{lease_id}"

    async def _call(self, command: str, *words: Any, **more: Any) -> Any:
        from redis.exceptions import RedisError

        if self._client is None:
            self._client = connect(self._url, timeout_s=CONNECT_S)
        try:
            async with asyncio.timeout(self._deadline_s):
                return await getattr(self._client, command)(*words, **more)
        except (RedisError, OSError, TimeoutError) as error:
            message = f"the store of leases does not answer ({type(error).__name__}); try again"
            raise LeaseBookDown(message, retry_after_s=1.0) from None
