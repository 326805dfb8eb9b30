"""The frame logs of events in Redis: a numbered ring kept by a script, and pub/sub for quick delivery.

Keys `map:{<event>}:head` and `map:{<event>}:ring`, channel `map:{<event>}`. A Redis that lost its content starts a new
epoch (the time), so its new numbers cannot be mistaken for old ones. All events share one client and one listening
connection. redis-py has no asyncio pub/sub for Cluster: there `listen` reads new frames every `poll_s` instead.
"""

import asyncio
import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any

from frontrow.boxoffice.adapters.seat_map.redis_channels import RedisChannels
from frontrow.boxoffice.seats.map.frame_log import MAX_FRAMES
from frontrow.boxoffice.seats.model.map_format import Frame, read_frame
from frontrow.boxoffice.seats.ports.seat_map import Exchange
from frontrow.core.clock import Clock, WallClock
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.core.redis_url import call, connect, disconnect, is_cluster

KEEP_S = 7 * 24 * 3600
SCRIPT = resources.files("frontrow.boxoffice.adapters.seat_map").joinpath("lua/exchange.lua").read_text("utf-8")
SCRIPT_SHA = hashlib.sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisFrameLogs:
    """The frame logs of all events on the Redis at `url`: `log_of(event_id)`."""

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        max_frames: int = MAX_FRAMES,
        timeout_s: float = 1.0,
        poll_s: float = 0.25,
    ) -> None:
        self._redis = connect(url, timeout_s=timeout_s)
        self._cluster = is_cluster(url)
        self._opening = asyncio.Lock()
        self.channels = None if self._cluster else RedisChannels(self._redis, timeout_s=timeout_s)
        self.clock = clock or WallClock()
        self.max_frames, self.poll_s = max_frames, poll_s

    def log_of(self, event_id: str) -> "RedisFrameLog":
        """The log of one event."""
        return RedisFrameLog(self, event_id)

    async def run(self, keys: list[str], args: list[str | int]) -> Any:
        """Run the script of an exchange."""
        from redis.exceptions import NoScriptError, RedisError

        try:
            if self._cluster:
                async with self._opening:  # in redis-py two concurrent first commands close each other's connections
                    await self._redis.initialize()
            try:
                return await call(self._redis, "EVALSHA", SCRIPT_SHA, len(keys), *keys, *args)
            except NoScriptError:  # a server that does not have the script has not run it
                return await call(self._redis, "EVAL", SCRIPT, len(keys), *keys, *args)
        except (RedisError, OSError) as error:
            raise Unavailable(f"the map's Redis did not answer: {error}", retry_after_s=1.0) from error

    async def aclose(self) -> None:
        if self.channels is not None:
            await self.channels.aclose()
        await disconnect(self._redis)


class RedisFrameLog:
    """The frame log of one event."""

    def __init__(self, logs: RedisFrameLogs, event_id: str) -> None:
        if set(event_id) & set("{}\n "):
            raise InvalidInput(f"event id {event_id[:40]!r} must have no braces or blanks", param="event")
        self._logs = logs
        self._channel = f"map:{{{event_id}}}"
        self._keys = [f"{self._channel}:head", f"{self._channel}:ring"]

    async def exchange(self, body: str, epoch: int, seq: int) -> Exchange:
        logs = self._logs
        args: list[str | int] = [logs.clock(), body, epoch, seq, logs.max_frames, self._channel, KEEP_S]
        reply = await logs.run(self._keys, args)
        lines = reply[2]
        frames = None if lines is None else tuple(read_frame(line.decode()) for line in lines)
        return Exchange(int(reply[0]), int(reply[1]), frames)

    async def listen(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        if self._logs.channels is None:
            await self._poll(on_frame, on_ready)
        else:
            await self._logs.channels.listen(self._channel, lambda line: on_frame(read_frame(line)), on_ready)

    async def _poll(self, on_frame: Callable[[Frame], None], on_ready: Callable[[], None]) -> None:
        seen = await self.exchange("", 0, 0)
        on_ready()
        while True:  # until cancelled
            await asyncio.sleep(self._logs.poll_s)
            seen = await self.exchange("", seen.epoch, seen.seq)
            for frame in seen.frames or ():
                on_frame(frame)
