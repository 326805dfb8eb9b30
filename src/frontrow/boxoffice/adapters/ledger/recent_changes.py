"""Which organisers have just changed something: their next reads must not go back in time on a replica (ADR 0161).

Redis keeps one mark per organiser for as long as a replica may lag, so every server knows it. While Redis does not
answer, every organiser counts as one who has, and the primary is read.
"""

import contextlib
from typing import Any, Final

from redis.exceptions import RedisError

from frontrow.core.errors import Unavailable
from frontrow.core.redis_url import call, connect, disconnect
from frontrow.shared.redis_breaker import RedisBreaker

KEY: Final = "frontrow:changed:{%s}"
TIMEOUT_S: Final = 0.5
MARGIN_S: Final = 2.0  # between the commit and the mark
AWAY: Final = (RedisError, OSError, TimeoutError, Unavailable)


class RedisRecentChanges:
    """Marks in Redis that end by themselves after `lasting_s`."""

    def __init__(self, redis_url: str, lasting_s: float) -> None:
        self._client: Any = connect(redis_url, timeout_s=TIMEOUT_S)
        self._breaker = RedisBreaker("the mark of recent changes")
        self._lasting_ms = round((lasting_s + MARGIN_S) * 1000)

    async def note(self, organiser_id: str) -> None:
        """This organiser changed something, and it is committed."""
        with contextlib.suppress(*AWAY):
            await self._call("SET", KEY % organiser_id, "1", "PX", self._lasting_ms)

    async def has(self, organiser_id: str) -> bool:
        """Whether this organiser may have changed something that a replica does not show yet."""
        try:
            return bool(await self._call("EXISTS", KEY % organiser_id))
        except AWAY:
            return True

    async def _call(self, *words: Any) -> Any:
        return await self._breaker.call(lambda: call(self._client, *words))

    async def aclose(self) -> None:
        await disconnect(self._client)
