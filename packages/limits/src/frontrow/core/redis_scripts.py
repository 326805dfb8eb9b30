"""Runs one Lua script in Redis, for blocking and for asyncio callers.

The script travels once. After that its digest is sent, and the text only again if the server has forgotten it. An event
loop has a client of its own, which is closed with the loop. At most `MAX_CALLS` calls of a kind run at once; the others
wait for their turn, never longer than `timeout_s`.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Sequence
from hashlib import sha1
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.forks import begin_in_child
from frontrow.core.redis_url import (
    call,
    call_sync,
    check_url,
    connect,
    connect_sync,
    derive_client,
    disconnect,
    disconnect_sync,
    sort_clients,
)

MAX_CALLS = 64
PAIR = "store=(redis.Redis(…), redis.asyncio.Redis(…))"


class RedisScript:
    """One script at one Redis: that of a URL, or of redis-py clients that the application made. Connects when used."""

    def __init__(self, given: Any, source: str, *, timeout_s: float, **options: Any) -> None:
        """`given` is a URL, a blocking client, or a pair of clients, one blocking and one for asyncio."""
        self._url = given if isinstance(given, str) else ""
        self._options = options
        self._own: tuple[Any, Any] = (None, None)
        if isinstance(given, str):
            check_url(given, **options)
        else:
            self._own = sort_clients(given, options)
            if self._own[0] is None:
                raise ConfigError(f"store needs a blocking client besides the one for asyncio: {PAIR}", param="store")
        self._source = source
        self._digest = sha1(source.encode(), usedforsecurity=False).hexdigest()
        self._timeout_s = timeout_s
        self._sync: Any = None
        begin_in_child(self._begin)
        self._begin()

    def _begin(self) -> None:
        """Begin without calls and event loops. Of a fork, the child's copies of blocking clients connect anew."""
        self._connecting = threading.Lock()
        self._turns = threading.BoundedSemaphore(MAX_CALLS)
        self._clients: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    def run(self, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        """Run the script and return its reply."""
        words = [len(keys), *keys, *arguments]
        if not self._turns.acquire(timeout=self._timeout_s):
            raise TimeoutError(f"{MAX_CALLS} calls to the store did not end within {self._timeout_s} s")
        try:
            client = self.client()
            try:
                return call_sync(client, "EVALSHA", self._digest, *words)
            except Exception as error:
                if not is_script_missing(error):
                    raise
                return call_sync(client, "EVAL", self._source, *words)
        finally:
            self._turns.release()

    def client(self) -> Any:
        """The blocking client."""
        if self._sync is None:
            with self._connecting:
                if self._sync is None:
                    self._sync = self._open_blocking()
        return self._sync

    def _open_blocking(self) -> Any:
        if self._own[0] is not None:
            return derive_client(self._own[0], self._timeout_s)
        return connect_sync(self._url, timeout_s=self._timeout_s, **self._options)

    def _open_asyncio(self) -> Any:
        if self._own[1] is not None:
            return derive_client(self._own[1], self._timeout_s)
        if not self._url:
            raise ConfigError(f"asyncio calls need an asyncio client, like {PAIR}", param="store")
        return connect(self._url, timeout_s=self._timeout_s, **self._options)

    async def arun(self, keys: Sequence[str], arguments: Sequence[str | bytes | int]) -> Any:
        """`run` for asyncio."""
        task = asyncio.current_task()
        cancelled_before = task.cancelling() if task is not None else 0
        async with asyncio.timeout(self._timeout_s):
            reply = await self._arun([len(keys), *keys, *arguments])
        if task is not None and task.cancelling() > cancelled_before:
            raise asyncio.CancelledError  # Python 3.11's wait_for, inside the client, loses it when the reply is there
        return reply

    async def _arun(self, words: Sequence[str | bytes | int]) -> Any:
        mine = self._clients.get(asyncio.get_running_loop()) or await self._open_client()
        async with mine.turns:
            try:
                return await call(mine.client, "EVALSHA", self._digest, *words)
            except Exception as error:
                if not is_script_missing(error):
                    raise
                return await call(mine.client, "EVAL", self._source, *words)

    async def _open_client(self) -> "_LoopClient":
        """The client of the running loop. `asyncio.run` closes it in the end, as it closes every async generator."""
        loop = asyncio.get_running_loop()
        for closed in [each for each in self._clients if each.is_closed()]:  # ended without closing its generators
            self._clients.pop(closed, None)
        opened = self._clients[loop] = _LoopClient(self._open_asyncio())
        opened.until_closed = self._until_closed(loop, opened.client)
        await anext(opened.until_closed)
        return opened

    async def _until_closed(self, loop: asyncio.AbstractEventLoop, client: Any) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._clients.pop(loop, None)
            if client is not self._own[1]:
                await disconnect(client)

    def close(self) -> None:
        """Close the blocking connections."""
        with self._connecting:
            client, self._sync = self._sync, None
        if client is not None and client is not self._own[0]:
            disconnect_sync(client)

    async def aclose(self) -> None:
        """Close the blocking connections and those of the running event loop."""
        self.close()
        mine = self._clients.get(asyncio.get_running_loop())
        if mine is not None and mine.until_closed is not None:
            await mine.until_closed.aclose()


class _LoopClient:
    """One event loop's client, and the turns of its callers."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.turns = asyncio.Semaphore(MAX_CALLS)
        self.until_closed: AsyncGenerator[None, None] | None = None


def is_script_missing(error: Exception) -> bool:
    """Whether the server answered that it does not know the digest."""
    return type(error).__name__ == "NoScriptError"
