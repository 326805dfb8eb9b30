"""The frame log of an event in Redis: a numbered ring kept by a script, and pub/sub for quick delivery.

Keys `map:{<event>}:head` and `map:{<event>}:ring`, channel `map:{<event>}`. A Redis that lost its content starts a new
epoch (the time), so its new numbers cannot be mistaken for old ones. redis-py has no asyncio pub/sub for Cluster: there
`listen` reads new frames every `poll_s` instead.
"""

import asyncio
from collections.abc import Callable
from importlib import resources
from typing import Any

from frontrow.boxoffice.model.map_format import Frame, read_frame
from frontrow.boxoffice.seatmap.frame_log import MAX_FRAMES, Exchange
from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.core.redis_url import connect, disconnect, is_cluster

MAX_SILENT = 3  # waits without a message or an answer to a ping
KEEP_S = 7 * 24 * 3600
SCRIPT = resources.files("frontrow.boxoffice.adapters.seatmap").joinpath("lua/exchange.lua").read_text("utf-8")


class RedisFrameLog:
    """The frame log of one event on the Redis at `url`."""

    def __init__(
        self,
        url: str,
        event_id: str,
        *,
        clock: Clock | None = None,
        max_frames: int = MAX_FRAMES,
        timeout_s: float = 1.0,
        poll_s: float = 0.25,
    ) -> None:
        if set(event_id) & set("{}\n "):
            raise InvalidInput(f"event id {event_id[:40]!r} must have no braces or blanks", param="event")
        self._redis = connect(url, timeout_s=timeout_s)
        self._script = self._redis.register_script(SCRIPT)
        self._clock = clock or WallClock()
        self._max_frames = max_frames
        self._timeout_s = timeout_s
        self._poll_s = poll_s
        self._cluster = is_cluster(url)
        self._opening = asyncio.Lock()
        self._channel = f"map:{{{event_id}}}"
        self._keys = [f"{self._channel}:head", f"{self._channel}:ring"]

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange:
        args: list[str | int] = [self._clock(), body, epoch, seq, self._max_frames, self._channel, KEEP_S]
        reply = await self._call(lambda: self._script(keys=self._keys, args=args))
        lines = reply[2]
        frames = None if lines is None else tuple(read_frame(line.decode()) for line in lines)
        return Exchange(int(reply[0]), int(reply[1]), frames)

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        if self._cluster:
            await self._poll(on_frame, on_ready)
            return
        pubsub = self._redis.pubsub(ignore_subscribe_messages=True)
        try:
            await self._call(lambda: pubsub.subscribe(self._channel))
            on_ready()
            silent = 0
            while silent < MAX_SILENT:  # each wait is bounded; the answer to a ping shows that the connection is alive
                message = await self._call(lambda: pubsub.get_message(timeout=self._timeout_s))
                silent = silent + 1 if message is None else 0
                if message is None:
                    await self._call(pubsub.ping)
                elif message["type"] == "message":
                    on_frame(read_frame(message["data"].decode()))
            raise Unavailable("the map's Redis stopped answering", retry_after_s=1.0)
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _poll(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        seen = await self.exchange("", 0, 0)
        on_ready()
        while True:  # until cancelled
            await asyncio.sleep(self._poll_s)
            seen = await self.exchange("", seen.epoch, seen.seq)
            for frame in seen.frames or ():
                on_frame(frame)

    async def aclose(self) -> None:
        await disconnect(self._redis)

    async def _call(self, command: Callable[[], Any]) -> Any:
        from redis.exceptions import RedisError

        try:
            if self._cluster:
                async with self._opening:  # in redis-py two concurrent first commands close each other's connections
                    await self._redis.initialize()
            return await command()
        except (RedisError, OSError) as error:
            raise Unavailable(f"the map's Redis did not answer: {error}", retry_after_s=1.0) from error
