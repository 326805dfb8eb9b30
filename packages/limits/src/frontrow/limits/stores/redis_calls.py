"""The calls to one Redis, shared by all stores of this process that use it in the same way (`shared_calls`)."""

from typing import Any

from frontrow.limits.stores.blocking_calls import BlockingCalls
from frontrow.limits.stores.redis_asyncio import LoopCalls
from frontrow.limits.stores.redis_blocking import open_connection
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.limits.stores.shared_calls import SharedCalls, share_calls


class RedisCallSource:
    """The calls of a `RedisSource`: a URL, or clients that serve blocking or asyncio callers or both."""

    refusal = "store=(redis.Redis(…), redis.asyncio.Redis(…))"

    def __init__(self, source: RedisSource) -> None:
        self.connections = source
        self.serves_blocking = source.serves_blocking
        self.serves_asyncio = source.serves_asyncio

    def blocking_calls(self, deadline_s: float) -> BlockingCalls:
        return BlockingCalls(lambda: open_connection(self.connections), deadline_s)

    def loop_calls(self, deadline_s: float) -> LoopCalls:
        return LoopCalls(self.connections, deadline_s)


def share_redis_calls(source: RedisSource, user: Any, *, deadline_s: float) -> SharedCalls:
    """The calls of `source`, for `user`. Users that connect in the same way get the same calls."""
    return share_calls(RedisCallSource(source), source.identity, user, deadline_s=deadline_s)
