"""The one checkpoint at the entry (W12): limits per IP and per person first, then the human check.

The limits are checked in microseconds and never wait for a store, so a flood is refused before anything else is read.
With Redis all servers share them (`LeasedLimiter`); without, each process has its part. A device (by
fingerprint) that asks for many challenges per minute gets harder work, never a refusal. Now-serving and the streams are
not limited: they are the same bytes for everybody, and refreshing the page must not lock people out.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from frontrow.core.clock import US_PER_S, Clock, WallClock
from frontrow.core.errors import Overloaded
from frontrow.limits import Decision, LeasedLimiter, Limiter, Quota, Rule
from frontrow.limits.http.client import ClientAddress
from frontrow.limits.http.headers import QuotaPolicy
from frontrow.waitingroom.entrance.human_check import NoCheck, fingerprint
from frontrow.waitingroom.ports import HumanCheck

MAX_SUSPICION = 3
MAX_LINES = 4096
ADDRESS, PERSON = "address", "person"  # the names of the limits in headers
counted: ContextVar[list[Decision] | None] = ContextVar("counted", default=None)
"""Where a door notes the decisions about the request that it answers."""


class TooManyRequests(Overloaded):
    """A limit per person or per IP was reached; try again after `Retry-After`."""

    code = "rate_limited"
    http_status = 429


@dataclass(frozen=True, slots=True)
class EntranceRules:
    """How many requests one person and one address may send, and one device before its work gets harder; and how
    clients are told."""

    per_person: str = "10/second"
    per_ip: str = "50/second"
    per_device: str = "20/minute"
    x_ratelimit_headers: bool = True
    """Whether answers carry `X-RateLimit-*` beside the IETF fields."""


def tightest(decisions: Sequence[Decision]) -> Decision:
    """The decision to tell: the refusal, or what has the least left. A rule just used up has as little as a refusal."""
    return min(decisions, key=lambda decision: (decision.allowed, decision.remaining))


class EntranceLimits:
    """Counts requests per address and person, and runs the human check of each event."""

    def __init__(
        self,
        checks: dict[str, HumanCheck] | None = None,
        *,
        rules: EntranceRules | None = None,
        trusted_proxies: Sequence[str] = (),
        clock: Clock | None = None,
        processes: int = 1,
        store: str = "memory://",
    ) -> None:
        """`store`: where all servers count together. In memory, each of `processes` gets its part of the limits."""
        rules = rules or EntranceRules()
        self._checks = dict(checks or {})
        self._clock = clock or WallClock()
        self._client_ip = ClientAddress(trusted_proxies)
        self.trusts_nobody = not trusted_proxies
        self._per_person = _open_limit(PERSON, rules.per_person, store, processes, clock)
        self._per_ip = _open_limit(ADDRESS, rules.per_ip, store, processes, clock)
        self._check_person, self._check_ip = self._per_person.check, self._per_ip.check
        self._per_device = Limiter(_part(rules.per_device, processes), clock=clock)
        self.addresses: dict[str, str] = {}  # peer -> its key
        self.refused = 0
        self.told: Decision | None = None  # the tightest decision since somebody last set this to None
        quotas = {ADDRESS: Quota.parse(rules.per_ip), PERSON: Quota.parse(rules.per_person)}
        policies = [QuotaPolicy.of(name, quota) for name, quota in quotas.items()]
        shown = ", ".join(f'"{policy.rule}";q={policy.limit};w={policy.window_s}' for policy in policies)
        self._policy = f"ratelimit-policy: {shown}\r\n".encode()
        self._lines: dict[tuple[str, int, int, int], bytes] = {}  # many requests are told the same
        self._starts = {name: f'ratelimit: "{name}";r='.encode() for name in quotas}
        self._tells_x = rules.x_ratelimit_headers
        self._wall_s: Callable[[], float] = time.time if clock is None else lambda: clock() / US_PER_S
        self._reset_line = (0, b"")  # of the last second that was told: many requests of one second share it

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
        decision = self._check_ip(ip)
        if self.told is None or decision[3] < self.told[3] or not decision[0]:
            self.told = decision
        if not decision[0] or counted.get() is not None:
            self._note(decision)

    def count_person(self, person: str) -> None:
        """Count one request of this person (by account or by place); raises `TooManyRequests`."""
        decision = self._check_person(person)
        if self.told is None or decision[3] < self.told[3] or not decision[0]:
            self.told = decision
        if not decision[0] or counted.get() is not None:
            self._note(decision)

    def _note(self, decision: Decision) -> None:
        """Note a decision for the headers of the framework's door; raises `TooManyRequests` for a refusal."""
        noted = counted.get()
        if noted is not None:
            noted.append(decision)
        if not decision[0]:
            self.refused += 1
            raise _refusal(decision)

    def header_lines(self, decision: Decision) -> bytes:
        """The `RateLimit`, `RateLimit-Policy` and `X-RateLimit-…` lines about a decision."""
        _, rule, limit, left, reset_us, retry_us, _, _ = decision
        until_s = -(-(retry_us or reset_us) // US_PER_S)
        lines = self._lines.get((rule, limit, left, until_s))
        if lines is None:
            if len(self._lines) >= MAX_LINES:
                self._lines.clear()
            lines = self._lines[rule, limit, left, until_s] = self._make_lines(rule, limit, left, until_s)
        if not self._tells_x:
            return lines
        reset_s = ceil(self._wall_s() + reset_us / US_PER_S)
        told_s, line = self._reset_line
        if reset_s != told_s:
            line = b"x-ratelimit-reset: %d\r\n" % reset_s
            self._reset_line = (reset_s, line)
        return lines + line

    def _make_lines(self, rule: str, limit: int, left: int, until_s: int) -> bytes:
        start, policy = self._starts.get(rule), self._policy
        if start is None:  # the rule is not one of the entrance's
            start = f'ratelimit: "{rule}";r='.encode()
            policy = f'{policy[:-2].decode()}, "{rule}";q={limit}\r\n'.encode()
        lines = b"%b%d;t=%d\r\n%b" % (start, left, until_s, policy)
        if self._tells_x:
            lines += b"x-ratelimit-limit: %d\r\nx-ratelimit-remaining: %d\r\n" % (limit, left)
        return lines

    def header_fields(self, decisions: Sequence[Decision]) -> list[tuple[bytes, bytes]]:
        """The same lines as names and values, about the tightest of these decisions."""
        lines = self.header_lines(tightest(decisions))
        pairs = [line.split(b": ", 1) for line in lines.split(b"\r\n") if line]
        return [(name, value) for name, value in pairs]

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

    async def settle(self) -> None:
        """Wait until the other servers know what this one has counted."""
        for limit in (self._per_person, self._per_ip):
            if isinstance(limit, LeasedLimiter):
                await limit.settle()

    async def aclose(self) -> None:
        """Close the connections to the store."""
        for limit in (self._per_person, self._per_ip, self._per_device):
            await limit.aclose()


def _open_limit(name: str, text: str, store: str, processes: int, clock: Clock | None) -> Limiter | LeasedLimiter:
    if store == "memory://":
        return Limiter(Rule(name, _part(text, processes)), clock=clock)
    return LeasedLimiter(Rule(name, Quota.parse(text)), store=store, clock=clock, shared_key=_digest, prefix="door")


def _digest(key: str) -> str:
    """So the store never sees an address or a person."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, person=b"frontrow door").hexdigest()


def _part(text: str, processes: int) -> Quota:
    """One process' part of a limit; at least one request."""
    quota = Quota.parse(text)
    return replace(quota, limit=max(1, quota.limit // processes), burst=max(0, quota.burst // processes))


def _refusal(decision: Decision) -> TooManyRequests:
    return TooManyRequests(
        "too many requests; your place does not move by asking more often", retry_after_s=decision.retry_after_s
    )
