"""The history of live figures in Redis, so that every server shows the same hour, also one that was just started.

One sorted set per event: a point per span of a few seconds, from whichever server was first. It keeps as many points as
the history shows and ends by itself.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.core.redis_scripts import RedisScript

KEPT_S: Final = 2 * 3600
TIMEOUT_S: Final = 1.0
# KEYS[1] the event's points; ARGV: span, point, spans known already, points kept, seconds kept
_SHARE: Final = """
local span = tonumber(ARGV[1])
if redis.call('ZCOUNT', KEYS[1], span, span) == 0 then
  redis.call('ZADD', KEYS[1], span, ARGV[2])
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -tonumber(ARGV[4]) - 1)
  redis.call('EXPIRE', KEYS[1], ARGV[5])
end
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[3], '+inf')
"""


class RedisPointLog:
    """See `PointLog` of the sales history."""

    def __init__(self, url: str) -> None:
        self._script = RedisScript(url, _SHARE, timeout_s=TIMEOUT_S)

    async def share(self, event_id: str, span: int, point: bytes, known_span: int, most: int) -> Sequence[bytes]:
        """Add the point of a span, unless another server did. The points of all spans after the known one."""
        found: Sequence[bytes] = await self._script.arun(
            [f"figures:{{{event_id}}}"], [span, point, known_span, most, KEPT_S]
        )
        return found

    async def aclose(self) -> None:
        await self._script.aclose()
