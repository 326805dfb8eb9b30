"""The one checkpoint at the entry (W12): limits per IP and per person first, then the human check.

The limits are checked in this process in microseconds, so a flood is refused before anything else is read. A device (by
fingerprint) that asks for many challenges per minute gets harder work, never a refusal. Now-serving and the streams are
not limited: they are the same bytes for everybody, and refreshing the page must not lock people out.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import Overloaded
from frontrow.limits import Decision, Limiter, Quota
from frontrow.limits.http.client import ClientAddress
from frontrow.waitingroom.door.human_check import HumanCheck, NoCheck, fingerprint

MAX_SUSPICION = 3


class TooManyRequests(Overloaded):
    """A limit per person or per IP was reached; try again after `Retry-After`."""

    code = "rate_limited"
    http_status = 429


@dataclass(frozen=True, slots=True)
class DoorRules:
    """How many requests one person and one address may send, and one device before its work gets harder."""

    per_person: str = "10/second"
    per_ip: str = "50/second"
    per_device: str = "20/minute"


class DoorLimits:
    """Counts requests per address and person, and runs the human check of each event."""

    def __init__(
        self,
        checks: dict[str, HumanCheck] | None = None,
        *,
        rules: DoorRules | None = None,
        trusted_proxies: Sequence[str] = (),
        clock: Clock | None = None,
        processes: int = 1,
    ) -> None:
        """`processes`: how many processes share these limits. Each gets its part; the sum never exceeds the whole."""
        rules = rules or DoorRules()
        self._checks = dict(checks or {})
        self._clock = clock or WallClock()
        self._client_ip = ClientAddress(trusted_proxies)
        self.trusts_nobody = not trusted_proxies
        self._per_person = Limiter(_part(rules.per_person, processes), clock=clock)
        self._per_ip = Limiter(_part(rules.per_ip, processes), clock=clock)
        self._per_device = Limiter(_part(rules.per_device, processes), clock=clock)
        self.addresses: dict[str, str] = {}  # peer -> its key
        self.refused = 0

    def set_check(self, event: str, check: HumanCheck | None) -> None:
        """Require this check, or none, for joins to the event's room from now on."""
        if check is None:
            self._checks.pop(event, None)
        else:
            self._checks[event] = check

    def ip_of(self, peer: str, forwarded: Sequence[str] = ()) -> str:
        """The key of the caller's address; `X-Forwarded-For` counts only when `peer` is one of our proxies."""
        if self.trusts_nobody or not forwarded:
            key = self.addresses.get(peer)
            if key is None:
                if len(self.addresses) >= 10_000:
                    self.addresses.clear()
                key = self.addresses[peer] = self._client_ip.key(peer) or "unknown"
            return key
        return self._client_ip.key(peer, forwarded) or "unknown"

    def is_proxy(self, peer: str) -> bool:
        """Whether this peer is one of our proxies, so that its forwarded addresses count."""
        return self._client_ip.is_proxy(peer)

    def count_ip(self, ip: str) -> None:
        """Count one request of this address; raises `TooManyRequests`."""
        decision = self._per_ip.check(ip)
        if not decision.allowed:
            self.refused += 1
            raise _refusal(decision)

    def count_person(self, person: str) -> None:
        """Count one request of this person (by account or by place); raises `TooManyRequests`."""
        decision = self._per_person.check(person)
        if not decision.allowed:
            self.refused += 1
            raise _refusal(decision)

    def challenge(self, event: str, headers: Sequence[tuple[bytes, bytes]], ip: str) -> dict[str, Any]:
        """What the page needs for its proof; harder work for a device that keeps asking."""
        check = self._checks.get(event) or NoCheck()
        now_us = self._clock()
        suspicion = 0
        device = fingerprint(headers, ip)
        for level in range(1, MAX_SUSPICION + 1):
            if self._per_device.check(f"{level}:{device}", now_us=now_us).allowed:
                break
            suspicion = level
        return check.challenge(now_us, suspicion=suspicion)

    def verify(self, event: str, proof: str | None, ip: str) -> Awaitable[None] | None:
        """None: passed at once. An awaitable: passed when it returns. Raises `NotHuman`."""
        check = self._checks.get(event)
        return check.verify(proof, ip, self._clock()) if check is not None else None

    def site_key_of(self, event: str) -> str:
        """The CAPTCHA provider's public key, where there is one."""
        return str(getattr(self._checks.get(event), "site_key", ""))

    def kind_of(self, event: str) -> str:
        """The name of the event's human check."""
        check = self._checks.get(event)
        return check.name if check is not None else "none"


def _part(text: str, processes: int) -> Quota:
    """One process' part of a limit; at least one request."""
    quota = Quota.parse(text)
    return replace(quota, limit=max(1, quota.limit // processes), burst=max(0, quota.burst // processes))


def _refusal(decision: Decision) -> TooManyRequests:
    return TooManyRequests(
        "too many requests; your place does not move by asking more often", retry_after_s=decision.retry_after_s
    )
