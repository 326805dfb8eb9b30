"""Calls to Redis from one event loop. Tasks that ask at the same time share one connection and one call.

A request is sent at once when the last call carried a single one, and otherwise gathered with those of the same turn of
the loop. Requests that come while a call is in flight go out together in the next one. Each caller waits no longer than
its deadline, also while connecting: the attempt goes on in its own task and serves those who come later.

A server may close a connection that was idle. If that shows only when requests have been sent, they are sent once more,
provided that counting them twice can only make a rule stricter (`RETRYABLE`).

The connection ends with its loop: `asyncio.run` closes asynchronous generators, and one of ours closes the connection.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, Protocol

import hiredis

from frontrow.core.redis_url import disconnect
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.protocol import StoreRequest, StoreResult
from frontrow.limits.stores.redis_blocking import MAX_BATCH, NOTHING, READ_BYTES, RETRYABLE
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.limits.stores.store_health import StoreHealth

MAX_WAITING = 100_000
Pending = tuple[float, StoreRequest, "asyncio.Future[StoreResult]"]  # when it must have a result, and what it asks


class Script(Protocol):
    """What the calls need to know of the script that decides."""

    def command(self, requests: Sequence[StoreRequest], *, with_source: bool) -> tuple[Any, ...]:
        """The words of a call that decides `requests`. With its source, if the server has forgotten the script."""

    def read_reply(self, requests: Sequence[StoreRequest], reply: Any) -> Sequence[StoreResult]: ...

    def split(self, requests: Sequence[StoreRequest]) -> Sequence[Sequence[int]]:
        """The positions of requests that one command can decide, command by command."""


class LoopCalls:
    """Decides the requests of one event loop, one call at a time."""

    def __init__(self, source: RedisSource, script: Script, deadline_s: float, health: StoreHealth) -> None:
        self.loop = asyncio.get_running_loop()
        self._source = source
        self._script = script
        self._deadline_s = deadline_s
        self._health = health
        self._connection: _Connection | _ClientConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: deque[Pending] = deque()
        self._sent: Sequence[Pending] = ()  # the requests of the call in flight
        self._sent_at_s = 0.0
        self._fails_at_s: float | None = None  # when the call in flight or the attempt to connect counts as a failure
        self._gathers = False  # whether requests of one turn of the loop are gathered
        self._gathering = False
        self._timer: asyncio.TimerHandle | None = None

    def submit(self, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Put a request in line and return the future of its result."""
        if len(self._waiting) >= MAX_WAITING:
            raise StoreDown(f"{MAX_WAITING} requests already wait for the limit store")
        loop = self.loop
        future: asyncio.Future[StoreResult] = loop.create_future()
        due_s = loop.time() + self._deadline_s
        self._waiting.append((due_s, request, future))
        if self._timer is None:
            self._timer = loop.call_at(due_s, self._watch)
        if not self._sent:
            if self._gathers or self._connection is None:
                self._gather()
            else:
                self._send_next()
        return future

    # -- sending and receiving -------------------------------------------------------------------------------------

    def _gather(self) -> None:
        if not self._gathering:
            self._gathering = True
            self.loop.call_soon(self._send_next)

    def _send_next(self) -> None:
        """Send the requests in line, if there are any and no call is in flight."""
        self._gathering = False
        waiting = self._waiting
        if self._sent or not waiting:
            return
        if self._connection is None:
            self._connect()
            return
        batch = [waiting.popleft() for _ in range(min(len(waiting), MAX_BATCH))]
        batch = [pending for pending in batch if not pending[2].done()]  # done: the caller was cancelled or is late
        if not batch:
            return
        self._sent = batch
        self._sent_at_s = time.perf_counter()
        self._fails_at_s = self.loop.time() + self._deadline_s
        self._gathers = len(batch) > 1
        self._connection.send([request for _, request, _ in batch])

    def on_results(self, results: Sequence[Any]) -> None:
        """Give the callers of the call in flight their results: a `StoreResult` or `StoreDown` each."""
        sent, self._sent = self._sent, ()
        self._fails_at_s = None
        if all(type(result) is StoreDown for result in results):
            self._health.record_failure(str(results[0]))
        else:
            self._health.record_success(time.perf_counter() - self._sent_at_s)
        for (_, _, future), result in zip(sent, results, strict=True):
            if future.done():
                continue
            if type(result) is StoreDown:
                future.set_exception(result)
            else:
                future.set_result(result)
        if self._gathers or self._waiting:
            self._gather()

    def on_lost(self, connection: "_Connection", reason: str, *, unanswered: bool) -> None:
        """The connection broke. `unanswered`: after it had worked, and before a byte of this call's reply."""
        if connection is not self._connection:
            return
        self._connection = None
        sent, self._sent = self._sent, ()
        self._fails_at_s = None
        if sent and unanswered and all(request.op in RETRYABLE for _, request, _ in sent):
            self._waiting.extendleft(reversed(sent))
        elif sent:
            self._fail(sent, reason)
        if self._waiting:
            self._gather()

    def _fail(self, pending: Sequence[Pending], reason: str) -> None:
        """Count a failure of the store and fail the callers that wait for it."""
        self._health.record_failure(reason)
        for _, _, future in pending:
            if not future.done():
                future.set_exception(StoreDown(f"the limit store failed: {reason}"))

    # -- connecting ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._fails_at_s is None:
            self._fails_at_s = self.loop.time() + self._deadline_s
        if self._connecting is None:
            self._connecting = self.loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            connection = _Connection(self, self._script)
            async with asyncio.timeout(self._source.timeout_s):
                writer, client = await self._source.open_asyncio(connection)
        except Exception as error:
            late = isinstance(error, TimeoutError) and not str(error)
            reason = "no connection within the deadline" if late else _reason(error)
            waiting, self._waiting = self._waiting, deque()
            self._fail(waiting, reason)
        else:
            if writer is not None:
                connection.take(writer)
                self._connection = connection
            else:
                self._connection = _ClientConnection(self, self._script, client, self._source.owns(client))
        finally:
            self._connecting = None
            self._fails_at_s = None
        self._send_next()

    # -- deadlines -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Fail the callers whose time is up, and count a call or an attempt to connect that takes too long."""
        now_s = self.loop.time()
        for due_s, _, future in self._sent:
            if due_s <= now_s and not future.done():
                future.set_exception(self._late())
        while self._waiting and self._waiting[0][0] <= now_s:
            future = self._waiting.popleft()[2]
            if not future.done():
                future.set_exception(self._late())
        if self._fails_at_s is not None and self._fails_at_s <= now_s:
            self._give_up(now_s)
        due = [due_s for due_s, _, _ in chain(self._sent, islice(self._waiting, 1)) if due_s > now_s]
        if self._fails_at_s is not None:
            due.append(self._fails_at_s)
        self._timer = self.loop.call_at(min(due), self._watch) if due else None

    def _late(self) -> StoreDown:
        return StoreDown(f"the limit store did not answer within {self._deadline_s * 1000:g} ms")

    def _give_up(self, now_s: float) -> None:
        if self._connecting is not None:  # the attempt goes on; each deadline without a connection is a failure
            self._health.record_failure("no connection within the deadline")
            self._fails_at_s = now_s + self._deadline_s if self._waiting else None
            return
        sent, self._sent = self._sent, ()
        self._fails_at_s = None
        self._fail(sent, "no answer within the deadline")
        if self._connection is not None and not self._connection.give_up():
            self._connection = None
        if self._waiting:
            self._gather()

    # -- closing ---------------------------------------------------------------------------------------------------

    def close_with_the_loop(self) -> AsyncGenerator[None, None]:
        """A generator that closes the connection when the loop closes its asynchronous generators, or when dropped."""
        generator = self._until_closed()
        with suppress(StopIteration):
            generator.asend(None).send(None)  # enters it, which makes it known to the loop
        return generator

    async def _until_closed(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Wait for the call in flight, then close the connection."""
        if self._connecting is not None:
            self._connecting.cancel()
            with suppress(asyncio.CancelledError):
                await self._connecting
        waiting = [future for _, _, future in (*self._sent, *self._waiting) if not future.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=self._deadline_s)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    def abandon(self) -> None:
        """Close the connection of a loop that was closed before it."""
        if isinstance(self._connection, _Connection):
            self._connection.shut_down()
        self._connection = None


class _Connection(asyncio.BufferedProtocol):
    """One connection. Replies come to `buffer_updated` and go to the calls."""

    def __init__(self, calls: LoopCalls, script: Script) -> None:
        self._calls = calls
        self._script = script
        self._writer: asyncio.StreamWriter | None = None  # kept, because it would close the connection when collected
        self._write: Any = None
        self._reader: Any = hiredis.Reader(notEnoughData=NOTHING)
        self._buffer = bytearray(READ_BYTES)
        self._requests: Sequence[StoreRequest] = ()
        self._results: Any = []
        self._expected: deque[tuple[Sequence[int], bool]] = deque()  # per reply: its requests, and if sent with source
        self._worked = False
        self._answered = False
        self._closed = asyncio.get_running_loop().create_future()

    def take(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._write = writer.transport.write

    def send(self, requests: Sequence[StoreRequest]) -> None:
        self._requests = requests
        self._answered = False
        groups = self._script.split(requests)
        if len(groups) > 1:
            self._results = [None] * len(requests)
        for ats in groups:
            self._send_group(ats, with_source=False)

    def _send_group(self, ats: Sequence[int], *, with_source: bool) -> None:
        self._expected.append((ats, with_source))
        group = self._requests if len(ats) == len(self._requests) else [self._requests[at] for at in ats]
        self._write(hiredis.pack_command(self._script.command(group, with_source=with_source)))

    def get_buffer(self, _sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        self._answered = True
        reader = self._reader
        reader.feed(self._buffer, 0, count)
        while (reply := reader.gets()) is not NOTHING:
            if not isinstance(reply, hiredis.PushNotification) and not self._take_reply(reply):
                return

    def _take_reply(self, reply: Any) -> bool:
        """Note the results of one command. Tells the calls when it was the last one. `False`: the connection ended."""
        if not self._expected:
            return self._lose("a reply that nobody asked for")
        ats, with_source = self._expected.popleft()
        if isinstance(reply, hiredis.ReplyError):
            if with_source or not str(reply).startswith("NOSCRIPT"):
                return self._lose(str(reply))  # another connection may reach another server or bring new credentials
            self._send_group(ats, with_source=True)
            return True
        if len(ats) == len(self._requests):
            self._results = self._script.read_reply(self._requests, reply)
        else:
            results = self._script.read_reply([self._requests[at] for at in ats], reply)
            for at, result in zip(ats, results, strict=True):
                self._results[at] = result
        if not self._expected:
            self._worked = True
            self._calls.on_results(self._results)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        reason = "the server closed the connection" if error is None else _reason(error)
        if not self._closed.done():
            self._closed.set_result(None)
        self._calls.on_lost(self, reason, unanswered=self._worked and not self._answered)

    def _lose(self, reason: str) -> bool:
        self._calls.on_lost(self, reason, unanswered=False)
        return self.give_up()

    def give_up(self) -> bool:
        """Close at once: the reply of the call in flight must not be taken for another's. Not usable afterwards."""
        if self._writer is not None:
            self._writer.transport.abort()
        return False

    async def aclose(self) -> None:
        self.give_up()
        await self._closed

    def shut_down(self) -> None:
        """Close the socket without the loop."""
        if self._writer is not None:
            with suppress(OSError, AttributeError):
                self._writer.get_extra_info("socket").shutdown(2)


class _ClientConnection:
    """A client that calls by itself, for a Cluster."""

    def __init__(self, calls: LoopCalls, script: Script, client: Any, owned: bool) -> None:
        self._calls = calls
        self._script = script
        self._client = client
        self._owned = owned
        self._task: asyncio.Task[None] | None = None

    def send(self, requests: Sequence[StoreRequest]) -> None:
        self._task = self._calls.loop.create_task(self._call(requests))

    async def _call(self, requests: Sequence[StoreRequest]) -> None:
        groups = self._script.split(requests)
        parts = await asyncio.gather(
            *(self._decide([requests[at] for at in ats]) for ats in groups), return_exceptions=True
        )
        results: list[Any] = [None] * len(requests)
        for ats, part in zip(groups, parts, strict=True):
            for offset, at in enumerate(ats):
                results[at] = StoreDown(_reason(part)) if isinstance(part, BaseException) else part[offset]
        self._calls.on_results(results)

    async def _decide(self, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]:
        try:
            reply = await self._execute(self._script.command(requests, with_source=False))
        except Exception as error:
            if type(error).__name__ != "NoScriptError":
                raise
            reply = await self._execute(self._script.command(requests, with_source=True))
        return self._script.read_reply(requests, reply)

    def _execute(self, words: tuple[Any, ...]) -> Any:
        return self._client.execute_command(*words, NEVER_DECODE=True)  # also if the client decodes replies to text

    def give_up(self) -> bool:
        """Cancel the call in flight. The client stays usable: it closes the connections of cancelled calls itself."""
        if self._task is not None:
            self._task.cancel()
        return True

    async def aclose(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._owned:
            await disconnect(self._client)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
