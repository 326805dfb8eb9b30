"""One Redis connection that listens to the channels of all events, however many are on sale.

Each listener of a channel gets its messages until the connection is lost; then every listener is told, and listens
again when it likes. The answer to a ping shows that a silent connection is alive.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from frontrow.core.background_tasks import start_task
from frontrow.core.errors import Unavailable

PING_AFTER = 4  # times the timeout, without a message

OnMessage = Callable[[str], None]
OnReady = Callable[[], None]


class _Listener:
    """One listener of one channel. `lost` ends with the error of the connection."""

    def __init__(self, on_message: OnMessage, on_ready: OnReady) -> None:
        self.on_message, self.on_ready = on_message, on_ready
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RedisChannels:
    """Listens to any number of channels of one Redis."""

    def __init__(self, redis: Any, *, timeout_s: float = 1.0) -> None:
        self._redis, self._timeout_s = redis, timeout_s
        self._listeners: dict[str, list[_Listener]] = {}
        self._pubsub: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    async def listen(self, channel: str, on_message: OnMessage, on_ready: OnReady) -> None:
        """Call `on_message` for each message, and `on_ready` as soon as none is missed any more.

        Runs until cancelled. Raises `Unavailable` when the connection is lost.
        """
        listener = _Listener(on_message, on_ready)
        try:
            await self._subscribe(channel, listener)
            await listener.lost
        finally:
            await self._drop(channel, listener)

    async def _subscribe(self, channel: str, listener: _Listener) -> None:
        async with self._sending:
            others = self._listeners.setdefault(channel, [])
            others.append(listener)
            try:
                if self._pubsub is None:
                    self._pubsub = self._redis.pubsub()
                # also if others listen already: the answer says that this listener misses nothing from now on
                await self._pubsub.subscribe(channel)
            except Exception as error:
                self._fail(error)
                raise _unavailable(error) from error
            if self._reader is None:
                self._reader = start_task(self._read(self._pubsub), "redis channels")

    async def _drop(self, channel: str, listener: _Listener) -> None:
        others = self._listeners.get(channel, [])
        if listener in others:
            others.remove(listener)
        if others or self._listeners.pop(channel, None) is None or self._pubsub is None:
            return
        async with self._sending:
            if channel not in self._listeners and self._pubsub is not None:
                with contextlib.suppress(Exception):  # a broken connection is found by its reader
                    await self._pubsub.unsubscribe(channel)

    async def _read(self, pubsub: Any) -> None:
        is_asked = False  # whether a ping waits for its answer
        try:
            while True:
                message = await pubsub.get_message(timeout=self._timeout_s * (1 if is_asked else PING_AFTER))
                if message is not None:
                    is_asked = False
                    self._deliver(message)
                elif is_asked:
                    break
                else:
                    is_asked = True
                    async with self._sending:
                        await pubsub.ping()
            raise Unavailable("Redis stopped answering", retry_after_s=1.0)
        except Exception as error:
            if self._pubsub is pubsub:
                self._fail(error)
        finally:
            with contextlib.suppress(Exception):
                await pubsub.aclose()

    def _deliver(self, message: dict[str, Any]) -> None:
        channel = message["channel"]
        listeners = tuple(self._listeners.get(channel.decode() if isinstance(channel, bytes) else str(channel), ()))
        if message["type"] == "message":
            text = message["data"].decode()
            for listener in listeners:
                listener.on_message(text)
        elif message["type"] == "subscribe":
            for listener in listeners:
                listener.on_ready()

    def _fail(self, error: Exception) -> None:
        """The connection is lost: tell every listener."""
        self._pubsub, self._reader = None, None
        listeners, self._listeners = self._listeners, {}
        for listener in (one for some in listeners.values() for one in some):
            if not listener.lost.done():
                listener.lost.set_exception(_unavailable(error))
                listener.lost.exception()  # read here, in case its task was cancelled meanwhile

    async def aclose(self) -> None:
        """Stop listening."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
        self._pubsub = None


def _unavailable(error: Exception) -> Unavailable:
    if isinstance(error, Unavailable):
        return error
    return Unavailable(f"the map's Redis did not answer: {error}", retry_after_s=1.0)
