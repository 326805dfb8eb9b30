"""The checks at the entrance (W12): limits per IP and per person first, then the human check.

A limit is checked in microseconds without waiting for a store, so a flood is refused before anything else is read.
People with a valid pass are counted by their visit, not by their address, which a whole campus may share.
With Redis all servers share the limits (`LeasedLimiter`); without it each process has its part of them. A busy device
and a listed network get harder work (`suspicion`); neither is refused. Now-serving and the streams have no limit:
everybody gets the same bytes, and people may refresh the page as often as they like.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import Overloaded
from frontrow.limits import Decision, LeasedLimiter, Limiter, Quota, Rule
from frontrow.limits.http.client_address import ClientAddress
from frontrow.limits.quota import MAX_LIMIT
from frontrow.waitingroom.entrance.human_check import NoCheck, ProofOfWork
from frontrow.waitingroom.entrance.limit_headers import LimitHeaders
from frontrow.waitingroom.entrance.suspect_networks import SuspectNetworks
from frontrow.waitingroom.entrance.suspicion import Suspicion
from frontrow.waitingroom.ports import HumanCheck

# the names of the limits in headers
ADDRESS, PERSON, CROWD, SCRIPTLESS = "address", "person", "crowd", "without-scripts"
CROWD_FACTOR = 20  # visits of one address may send so many times what the address may send without a pass
counted: ContextVar[list[Decision] | None] = ContextVar("counted", default=None)
"""The decisions about the request under way, for the headers of its response. None: nobody writes such headers."""


class TooManyRequests(Overloaded):
    """A limit per person or per IP was reached; try again after `Retry-After`."""

    code = "rate_limited"
    http_status = 429


@dataclass(frozen=True, slots=True)
class EntranceRules:
    """How many requests one person and one address may send, and how many one device before its work gets harder."""

    per_person: str = "10/second"
    per_ip: str = "50/second"
    per_device: str = "20/minute"
    x_ratelimit_headers: bool = True
    """Whether responses have `X-RateLimit-*` beside the IETF fields."""
    without_scripts: str = "3/minute"
    """How many joins of one address need no proof of work, because a form without scripts sent them."""


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
        suspects: SuspectNetworks | None = None,
    ) -> None:
        """`store`: where all servers count together. In memory, each of `processes` gets its part of the limits. The
        devices of `suspects` get harder work."""
        rules = rules or EntranceRules()
        self._checks = dict(checks or {})
        self._clock = clock or WallClock()
        self._client_ip = ClientAddress(trusted_proxies)
        self.trusts_nobody = not trusted_proxies
        self._per_person = _open_limit(PERSON, rules.per_person, store, processes, clock)
        self._per_ip = _open_limit(ADDRESS, rules.per_ip, store, processes, clock)
        self._per_crowd = _open_limit(CROWD, rules.per_ip, store, processes, clock, CROWD_FACTOR)
        self._scriptless = _open_limit(SCRIPTLESS, rules.without_scripts, store, processes, clock)
        self._suspicion = Suspicion(Limiter(_part(rules.per_device, processes), clock=clock), suspects)
        self.addresses: dict[str, str] = {}  # peer -> its key
        self.refused = 0
        self.without_scripts = 0  # joins of forms that proved nothing
        self.harder = self._suspicion.harder
        self.needs_proof: Callable[[str], bool] = lambda event: True
        """Whether joins to an event's room need a proof at the moment."""
        quotas = {ADDRESS: Quota.parse(rules.per_ip), PERSON: Quota.parse(rules.per_person)}
        self.headers = LimitHeaders(quotas, with_x_fields=rules.x_ratelimit_headers, clock=clock)

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
        """Count one request of this address. Raises `TooManyRequests`."""
        self._enforce(self._per_ip.check(ip))

    def count_visit(self, visit_id: str, ip: str) -> None:
        """Count one request of a visit, which may send as much as an address. Many people may share the address: it is
        not charged, and only bounds how much all of its visits send together. Raises `TooManyRequests`."""
        crowd = self._per_crowd.check(ip)
        if not crowd[0]:
            self._enforce(crowd)
        self._enforce(self._per_ip.check(f"visit {visit_id}"))

    def count_unread_pass(self, ip: str) -> None:
        """Count a pass of this address whose signature must be checked first. Raises `TooManyRequests`."""
        decision = self._per_ip.check(f"pass {ip}")
        if not decision[0]:
            self._enforce(decision)

    def count_person(self, person: str) -> None:
        """Count one request of this person (an account or a place). Raises `TooManyRequests`."""
        self._enforce(self._per_person.check(person))

    def count_refused(self, ip: str) -> Decision:
        """Count a request of this address that was refused for another reason."""
        decision = self._per_ip.check(ip)
        self.refused += not decision.allowed
        return decision

    def _enforce(self, decision: Decision) -> None:
        decisions = counted.get()
        if decisions is not None:
            decisions.append(decision)
        if not decision[0]:
            self.refused += 1
            raise TooManyRequests(
                "too many requests; your place does not move by asking more often", retry_after_s=decision.retry_after_s
            )

    def challenge(self, event: str, headers: Sequence[tuple[bytes, bytes]], ip: str) -> dict[str, Any]:
        """What the page needs for its proof. A device that keeps asking gets harder work."""
        check = (self._checks.get(event) if self.needs_proof(event) else None) or NoCheck()
        now_us = self._clock()
        return check.challenge(now_us, suspicion=self._suspicion.level(headers, ip, now_us))

    def verify(self, event: str, proof: str | None, ip: str, *, is_form: bool = False) -> Awaitable[None] | None:
        """None: passed at once. An awaitable: passed when it returns. A browser without scripts sends a form and can
        compute nothing: a few of each address pass without work. Raises `NotHuman`, `TooManyRequests`."""
        check = self._checks.get(event)
        if check is None or not self.needs_proof(event):
            return None
        if is_form and not proof and check.name == ProofOfWork.name:
            self._enforce(self._scriptless.check(ip))
            self.without_scripts += 1
            return None
        return check.verify(proof, ip, self._clock())

    def site_key_of(self, event: str) -> str:
        """The public key of the event's CAPTCHA provider, if there is one."""
        check = self._checks.get(event)
        return check.site_key if check is not None else ""

    def kind_of(self, event: str) -> str:
        """The name of the event's human check."""
        check = self._checks.get(event)
        return check.name if check is not None else "none"

    def kind_now(self, event: str) -> str:
        """The name of the check that a join must pass at the moment."""
        return self.kind_of(event) if self.needs_proof(event) else "none"

    async def settle(self) -> None:
        """Wait until the store has what this process has counted."""
        for limit in (self._per_person, self._per_ip, self._per_crowd, self._scriptless):
            if isinstance(limit, LeasedLimiter):
                await limit.settle()

    async def aclose(self) -> None:
        """Close the connections to the store."""
        for limit in (self._per_person, self._per_ip, self._per_crowd, self._scriptless, self._suspicion):
            await limit.aclose()


def _open_limit(
    name: str, text: str, store: str, processes: int, clock: Clock | None, factor: int = 1
) -> Limiter | LeasedLimiter:
    if store == "memory://":
        return Limiter(Rule(name, _times(_part(text, processes), factor)), clock=clock)
    return LeasedLimiter(
        Rule(name, _times(Quota.parse(text), factor)), store=store, clock=clock, shared_key=_digest, prefix="door"
    )


def _digest(key: str) -> str:
    """The key in the store, which must not contain an address or a person."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16, person=b"frontrow door").hexdigest()


def _times(quota: Quota, factor: int) -> Quota:
    """So many times this quota, or as much of it as a quota can be."""
    factor = max(1, min(factor, (MAX_LIMIT - 1) // max(quota.limit, quota.burst)))
    return replace(quota, limit=quota.limit * factor, burst=quota.burst * factor)


def _part(text: str, processes: int) -> Quota:
    """One process' part of a limit; at least one request."""
    quota = Quota.parse(text)
    return replace(quota, limit=max(1, quota.limit // processes), burst=max(0, quota.burst // processes))
