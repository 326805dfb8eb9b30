"""How often somebody may try: per account, per address of the network, with several windows at once.

The windows are the backoff: after five wrong passwords in a minute an account waits seconds, after twenty in an hour
minutes, after sixty in a day hours. Accounts that do not exist are counted the same. Success gives the attempt back.
Keys are digests: the limiter's store never sees an address.
"""

import hashlib
from collections.abc import Sequence

from frontrow.boxoffice.model.people import TooManyTries
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.core.clock import Clock
from frontrow.limits import Limiter, Quota, Rule


class Tries:
    """Counts attempts; `take` raises TooManyTries with the time to wait."""

    def __init__(self, name: str, quotas: Sequence[str], store: str, clock: Clock | None) -> None:
        rules = [Rule(f"people-{name}-{at}", Quota.parse(quota)) for at, quota in enumerate(quotas)]
        self._limiter = Limiter(rules, store=store, clock=clock if store == "memory://" else None)

    async def take(self, who: str) -> None:
        decision = await self._limiter.acheck(_key(who))
        if not decision.allowed:
            raise TooManyTries("too many attempts; wait before the next", retry_after_s=decision.retry_after_s)

    async def give_back(self, who: str) -> None:
        await self._limiter.arefund(_key(who))

    async def aclose(self) -> None:
        await self._limiter.aclose()


class AllTries:
    """One counter for each thing that can be guessed."""

    def __init__(self, settings: PeopleSettings, store: str, clock: Clock | None) -> None:
        self.account = Tries("account", settings.account_tries, store, clock)
        self.ip = Tries("ip", settings.ip_tries, store, clock)
        self.code = Tries("code", settings.code_tries, store, clock)
        self.link = Tries("link", settings.link_asks, store, clock)
        self.link_ip = Tries("link-ip", settings.link_asks_per_ip, store, clock)

    async def aclose(self) -> None:
        for tries in (self.account, self.ip, self.code, self.link, self.link_ip):
            await tries.aclose()


def _key(who: str) -> str:
    return hashlib.sha256(f"frontrow tries:{who or 'unknown'}".encode()).hexdigest()[:32]
