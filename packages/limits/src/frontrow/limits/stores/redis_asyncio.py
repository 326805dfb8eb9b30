"""Calls to Redis from one event loop. Tasks that ask at the same time share one connection and one call.

A request is sent at once when the last call carried a single one, and otherwise gathered with those of the same turn of
the loop. Requests that come while a call is in flight go out together in the next one.

The deadline is the store's time, as for blocking calls (`blocking_calls`): from when a call is sent until its answer is
there to be read. When the store misses it, all who wait are told so. Connecting has the same deadline, counted in turns
of the loop that are no longer than planned; the attempt goes on in its own task and serves those who come later.

A server may close a connection that was idle. If that shows only when requests have been sent, they are sent once more,
provided that counting them twice can only make a rule stricter (`RETRYABLE`).

The connection ends with its loop: `asyncio.run` closes asynchronous generators, and one of ours closes the connection.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import hiredis

from frontrow.core.redis_url import disconnect
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.blocking_calls import (
    MAX_BATCH,
    MAX_STARVED_S,
    MIN_TURN_S,
    RETRYABLE,
    SLICES,
    TURN_DEADLINES,
    running_time_s,
)
from frontrow.limits.stores.protocol import StoreRequest, StoreResult
from frontrow.limits.stores.redis_blocking import NOTHING, READ_BYTES, RedisAsker
from frontrow.limits.stores.redis_source import RedisSource

MAX_WAITING = 100_000
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


class Pending(NamedTuple):
    """A request in line: since when, who asks, and what."""

    since: tuple[float, int]  # the time, and how often the calls had been watched
    asker: RedisAsker
    request: StoreRequest
    future: "asyncio.Future[StoreResult]"


class LoopCalls:
    """Decides the requests of one event loop, one call at a time."""

    def __init__(self, source: RedisSource, deadline_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._source = source
        self._deadline_s = deadline_s
        self._turn_s = max(MIN_TURN_S, TURN_DEADLINES * deadline_s)
        self._connection: _Connection | _ClientConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._slice_s = deadline_s / SLICES  # how often to look at an attempt to connect
        self._slice_began_s = self._connect_left_s = 0.0  # what is left of the deadline for connecting
        self._told_late: set[RedisAsker] = set()  # who was told that connecting takes too long
        self._waiting: deque[Pending] = deque()
        self._sent: Sequence[Pending] = ()  # the requests of the call in flight
        self._sent_at_s = 0.0
        self._fails_at_s: float | None = None  # when to look at the call in flight or the attempt to connect
        self._gathers = False  # whether requests of one turn of the loop are gathered
        self._gathering = False
        self._timer: asyncio.TimerHandle | None = None
        self._watched = 0  # how often; a turn of the loop that takes long counts once

    def submit(self, asker: RedisAsker, request: StoreRequest) -> "asyncio.Future[StoreResult]":
        """Put a request in line and return the future of its result."""
        if len(self._waiting) >= MAX_WAITING:
            raise StoreDown(f"{MAX_WAITING} requests already wait for the limit store")
        loop = self.loop
        future: asyncio.Future[StoreResult] = loop.create_future()
        now_s = loop.time()
        self._waiting.append(_new(Pending, ((now_s, self._watched), asker, request, future)))
        if self._timer is None:
            self._timer = loop.call_at(now_s + self._deadline_s, self._watch)
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
        batch = [pending for pending in batch if not pending[3].done()]  # done: the caller was cancelled or is late
        if not batch:
            return
        self._sent = batch
        self._sent_at_s = time.perf_counter()
        self._fails_at_s = self.loop.time() + self._deadline_s
        self._gathers = len(batch) > 1
        self._connection.send(batch)

    def on_results(self, results: Sequence[Any]) -> None:
        """Give the callers of the call in flight their results: a `StoreResult` or `StoreDown` each."""
        sent, self._sent = self._sent, ()
        self._fails_at_s = None
        self._record(sent, results)
        for (_, _, _, future), result in zip(sent, results, strict=True):
            if future.done():
                continue
            if type(result) is StoreDown:
                future.set_exception(result)
            else:
                future.set_result(result)
        if self._gathers or self._waiting:
            self._gather()

    def _record(self, sent: Sequence[Pending], results: Sequence[Any]) -> None:
        """Count the call for each store that asked. It failed if none of its requests was decided."""
        failures: dict[RedisAsker, StoreDown | None] = {}
        for pending, result in zip(sent, results, strict=True):
            down = result if type(result) is StoreDown else None
            failures[pending[1]] = down and failures.get(pending[1], down)
        for asker, down in failures.items():
            if down is None:
                asker.health.record_success(time.perf_counter() - self._sent_at_s)
            else:
                asker.health.record_failure(str(down))

    def on_lost(self, connection: "_Connection", reason: str, *, unanswered: bool) -> None:
        """The connection broke. `unanswered`: after it had worked, and before a byte of this call's reply."""
        if connection is not self._connection:
            return
        self._connection = None
        sent, self._sent = self._sent, ()
        self._fails_at_s = None
        if sent and unanswered and all(pending.request.op in RETRYABLE for pending in sent):
            self._waiting.extendleft(reversed(sent))
        elif sent:
            self._fail(sent, reason)
        if self._waiting:
            self._gather()

    def _fail(self, pending: Sequence[Pending], reason: str) -> None:
        """Count a failure of the store for each that asked, and fail the callers that wait for it."""
        for asker in {each.asker for each in pending}:
            asker.health.record_failure(reason)
        for each in pending:
            if not each.future.done():
                each.future.set_exception(StoreDown(f"the limit store failed: {reason}"))

    # -- connecting ------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._fails_at_s is None:
            self._connect_left_s = self._deadline_s
            self._watch_connecting()
        if self._connecting is None:
            self._connecting = self.loop.create_task(self._open())

    def _watch_connecting(self) -> None:
        """Look again after a slice of the deadline. A turn of the loop that takes much longer counts as one slice."""
        self._slice_began_s = self.loop.time()
        self._fails_at_s = self._slice_began_s + self._slice_s
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(self._fails_at_s, self._watch)

    async def _open(self) -> None:
        try:
            connection = _Connection(self)
            async with asyncio.timeout(self._source.timeout_s):
                writer, client = await self._source.open_asyncio(connection)
        except Exception as error:
            late = isinstance(error, TimeoutError) and not str(error)
            reason = "no connection within the deadline" if late else _reason(error)
            waiting, self._waiting = self._waiting, deque()
            for asker in self._told_late - {pending.asker for pending in waiting}:
                asker.health.record_failure(reason)
            self._fail(waiting, reason)
        else:
            if writer is not None:
                connection.take(writer)
                self._connection = connection
            else:
                self._connection = _ClientConnection(self, client, self._source.owns(client))
        finally:
            self._connecting = None
            self._fails_at_s = None
            self._told_late = set()
        self._send_next()

    # -- deadlines -------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Fail the callers of a call or an attempt to connect that takes too long, and those who wait for too long."""
        self._timer = None
        now_s = self.loop.time()
        self._watched += 1
        while self._waiting and self._waits_too_long(self._waiting[0], now_s):
            future = self._waiting.popleft().future
            if not future.done():
                future.set_exception(StoreDown(f"the limit store was busy for {self._turn_s:g} s"))
        if self._fails_at_s is not None and self._fails_at_s <= now_s:
            self._look_at_late()
        if self._timer is None and (self._sent or self._waiting):
            at_s = now_s + self._deadline_s  # a call that is sent from now on fails later than that
            self._timer = self.loop.call_at(
                at_s if self._fails_at_s is None else min(at_s, self._fails_at_s), self._watch
            )

    def _waits_too_long(self, pending: Pending, now_s: float) -> bool:
        since_s, watched = pending.since
        waited_s = now_s - since_s
        return waited_s >= max(self._turn_s, MAX_STARVED_S) or (
            waited_s >= self._turn_s and self._watched - watched > SLICES
        )

    def _look_at_late(self) -> None:
        """The store has missed its deadline, unless it is still connecting and has some of it left."""
        self._fails_at_s = None
        if self._connecting is not None:
            self._connect_left_s -= running_time_s(self._slice_s, self.loop.time() - self._slice_began_s)
            if self._connect_left_s > 0:
                self._watch_connecting()
                return
        late = "no connection within the deadline" if self._connecting is not None else "no answer within the deadline"
        pending, self._sent, self._waiting = [*self._sent, *self._waiting], (), deque()
        if self._connecting is not None:  # the attempt goes on; each deadline without a connection is a failure
            self._told_late |= {each.asker for each in pending}
        elif self._connection is not None and not self._connection.give_up():
            self._connection = None
        self._fail(pending, late)

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
        waiting = [pending.future for pending in (*self._sent, *self._waiting) if not pending.future.done()]
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

    def __init__(self, calls: LoopCalls) -> None:
        self._calls = calls
        self._writer: asyncio.StreamWriter | None = None  # kept, because it would close the connection when collected
        self._write: Any = None
        self._reader: Any = hiredis.Reader(notEnoughData=NOTHING)
        self._buffer = bytearray(READ_BYTES)
        self._expected: deque[_Command] = deque()
        self._results: list[Any] = []
        self._worked = False
        self._answered = False
        self._closed = asyncio.get_running_loop().create_future()

    def take(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._write = writer.transport.write

    def send(self, batch: Sequence[Pending]) -> None:
        self._answered = False
        self._results = [None] * len(batch)
        for command in split_commands(batch):
            self._send_command(command, with_source=False)

    def _send_command(self, command: "_Command", *, with_source: bool) -> None:
        self._expected.append(command)
        self._write(command.asker.frame(command.requests, with_source=with_source))

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
        command = self._expected.popleft()
        if isinstance(reply, hiredis.ReplyError):
            if command.resent or not str(reply).startswith("NOSCRIPT"):
                return self._lose(str(reply))  # another connection may reach another server or bring new credentials
            self._send_command(command._replace(resent=True), with_source=True)
            return True
        results = command.asker.read_reply(command.requests, reply)
        for at, result in zip(command.positions, results, strict=True):
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

    def __init__(self, calls: LoopCalls, client: Any, owned: bool) -> None:
        self._calls = calls
        self._client = client
        self._owned = owned
        self._task: asyncio.Task[None] | None = None

    def send(self, batch: Sequence[Pending]) -> None:
        self._task = self._calls.loop.create_task(self._call(batch))

    async def _call(self, batch: Sequence[Pending]) -> None:
        commands = split_commands(batch)
        replies = await asyncio.gather(*map(self._decide, commands), return_exceptions=True)
        results: list[Any] = [None] * len(batch)
        for command, reply in zip(commands, replies, strict=True):
            for offset, at in enumerate(command.positions):
                results[at] = StoreDown(_reason(reply)) if isinstance(reply, BaseException) else reply[offset]
        self._calls.on_results(results)

    async def _decide(self, command: "_Command") -> Sequence[StoreResult]:
        asker, requests = command.asker, command.requests
        try:
            reply = await self._execute(asker.command(requests, with_source=False))
        except Exception as error:
            if type(error).__name__ != "NoScriptError":
                raise
            reply = await self._execute(asker.command(requests, with_source=True))
        return asker.read_reply(requests, reply)

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


class _Command(NamedTuple):
    """Requests of one store that one command decides, and their positions in the batch."""

    asker: RedisAsker
    positions: Sequence[int]
    requests: Sequence[StoreRequest]
    resent: bool = False  # with the script's source


def split_commands(batch: Sequence[Pending]) -> list[_Command]:
    """The commands that decide a batch: at least one for each store that asks."""
    if len(batch) == 1:
        return [_Command(batch[0].asker, (0,), (batch[0].request,))]
    by_asker: dict[RedisAsker, list[int]] = {}
    for at, pending in enumerate(batch):
        by_asker.setdefault(pending[1], []).append(at)
    commands: list[_Command] = []
    for asker, ats in by_asker.items():
        requests = [batch[at][2] for at in ats]
        for part in asker.split(requests):
            commands.append(_Command(asker, [ats[at] for at in part], [requests[at] for at in part]))
    return commands


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
