"""A limit on attempts at something that can be guessed or misused: a password, a link, a discount code.

Keys are digests, so the limiter's store never sees an address. The numbers are where the attempts are: in
`people/sign_in_limits.py` and `pricing/discount_code_tries.py`.
"""

import hashlib
from collections.abc import Sequence

from frontrow.core.clock import Clock
from frontrow.core.errors import Overloaded
from frontrow.limits import Limiter, Quota, Rule


class TooManyTries(Overloaded):
    """Too many attempts for this account or from this address; `Retry-After` says when to try again."""

    code = "too_many_tries"
    http_status = 429


class AttemptLimit:
    """Counts attempts and refuses those over the limit."""

    def __init__(self, name: str, quotas: Sequence[str], store: str, clock: Clock | None) -> None:
        # all names begin with "people-", as in stores that count already
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


def _key(who: str) -> str:
    return hashlib.sha256(f"frontrow tries:{who or 'unknown'}".encode()).hexdigest()[:32]
