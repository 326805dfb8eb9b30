"""Limits on sign-in attempts: per account and per network address, with several windows at once.

The windows are the backoff. After five wrong passwords in a minute an account waits seconds, after twenty in an hour
minutes, after sixty in a day hours. Accounts that do not exist are counted the same. The count of a successful
attempt is refunded. Keys are digests, so the limiter's store never sees an address. `[people]` in the settings can
change the numbers.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.people.model.people import TooManyTries
from frontrow.core.clock import Clock
from frontrow.limits import Limiter, Quota, Rule

PASSWORDS_PER_ACCOUNT: Final = ("5/minute", "20/hour", "60/day")
ATTEMPTS_PER_ADDRESS: Final = ("30/minute", "200/hour")
CODES_PER_MEMBER: Final = ("5/minute", "20/hour")
LINKS_PER_EMAIL: Final = ("3/minute", "10/hour")
DISCOUNTS_PER_FAN: Final = ("10/minute", "40/hour")
DISCOUNTS_PER_ADDRESS: Final = ("60/minute", "400/hour")
LINKS_PER_ADDRESS: Final = ("100/minute", "1000/hour")  # a hall's network is one address


class AttemptLimit:
    """Counts attempts and refuses those over the limit."""

    def __init__(self, name: str, quotas: Sequence[str], store: str, clock: Clock | None) -> None:
        rules = [Rule(f"people-{name}-{at}", Quota.parse(quota)) for at, quota in enumerate(quotas)]
        self._limiter = Limiter(rules, store=store, clock=clock if store == "memory://" else None)

    async def count_attempt(self, who: str) -> None:
        """Count an attempt. Raises `TooManyTries` with the time to wait if there were too many."""
        decision = await self._limiter.acheck(_key(who))
        if not decision.allowed:
            raise TooManyTries("too many attempts; wait before the next", retry_after_s=decision.retry_after_s)

    async def forgive_attempt(self, who: str) -> None:
        """Take back one counted attempt, because it succeeded."""
        await self._limiter.arefund(_key(who))

    async def aclose(self) -> None:
        await self._limiter.aclose()


class SignInLimits:
    """One limit for each thing that can be guessed or misused. Each argument is a list of quotas."""

    def __init__(
        self,
        store: str,
        clock: Clock | None,
        *,
        account: Sequence[str] = PASSWORDS_PER_ACCOUNT,
        ip: Sequence[str] = ATTEMPTS_PER_ADDRESS,
        code: Sequence[str] = CODES_PER_MEMBER,
        link: Sequence[str] = LINKS_PER_EMAIL,
        link_ip: Sequence[str] = LINKS_PER_ADDRESS,
    ) -> None:
        self.account = AttemptLimit("account", account, store, clock)
        self.ip = AttemptLimit("ip", ip, store, clock)
        self.code = AttemptLimit("code", code, store, clock)
        self.link = AttemptLimit("link", link, store, clock)
        self.link_ip = AttemptLimit("link-ip", link_ip, store, clock)
        self.discount = AttemptLimit("discount", DISCOUNTS_PER_FAN, store, clock)
        self.discount_ip = AttemptLimit("discount-ip", DISCOUNTS_PER_ADDRESS, store, clock)

    async def aclose(self) -> None:
        for limit in (self.account, self.ip, self.code, self.link, self.link_ip, self.discount, self.discount_ip):
            await limit.aclose()


def _key(who: str) -> str:
    return hashlib.sha256(f"frontrow tries:{who or 'unknown'}".encode()).hexdigest()[:32]
