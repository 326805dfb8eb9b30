"""Blocking calls to Redis. Threads that ask at the same time share one connection and one call.

The first thread makes a call for itself. Threads that come meanwhile wait; when the call ends, the newest of them makes
the next call for all. So there are never more connections than one, however many threads ask. The
connection is a socket that was taken over from redis-py; `redis_source` says what that saves.

The deadline is the store's time: from when a call is sent until its answer is there to be read. Connecting, which a
thread of its own does, has the same deadline. When the store misses it, everybody who waits is told so at once. The
time in which this process did not get to run, because hundreds of threads want the interpreter, is not the store's: it
is not counted (`wait_running_time`), and an answer that came meanwhile is still read. Still, every wait has a bound.

A server may close a connection that was idle. If that shows only when a request has been sent, it is sent once more,
provided that counting it twice can only make a rule stricter (`RETRYABLE`).
"""

import os
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from ssl import SSLWantReadError
from typing import Any, Protocol

import hiredis

from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.core.redis_url import disconnect_sync
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.protocol import CHECK, PEEK, StoreRequest, StoreResult
from frontrow.limits.stores.redis_source import RedisSource
from frontrow.limits.stores.store_health import StoreHealth

MAX_BATCH = 256
MAX_WAITING = 10_000
RETRYABLE = frozenset((CHECK, PEEK))
READ_BYTES = 65_536
CLUSTER_THREADS = 8
SLICES = 16  # of a wait
MAX_STARVED_S = 10.0  # of a wait, however little of it counts
MIN_TURN_S, TURN_DEADLINES = 1.0, 4  # how long a thread waits for the calls of others before the store counts as down
NOTHING = object()  # the reader has no whole reply yet
_LEAD = object()  # given to a waiting thread in place of a result: make the next call


class ConnectionLost(Exception):
    """The connection broke. `unanswered`: after it had worked, and before a byte of this call's reply. `late`: the
    store missed its deadline."""

    def __init__(self, reason: str, *, unanswered: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.unanswered = unanswered
        self.late = late


class Asker(Protocol):
    """A store that asks: it writes its requests as commands, reads the replies, and knows how its calls went."""

    @property
    def health(self) -> StoreHealth: ...

    def send(self, connection: Any, requests: Sequence[StoreRequest], left_s: float) -> Sequence[StoreResult]:
        """Decide `requests` over a connection that has `left_s` for each command."""

    def command(self, requests: Sequence[StoreRequest], *, with_source: bool) -> tuple[Any, ...]:
        """The words of a call that decides `requests`. With its source, if the server has forgotten the script."""

    def frame(self, requests: Sequence[StoreRequest], *, with_source: bool) -> bytes:
        """The same call as it goes over the wire."""

    def read_reply(self, requests: Sequence[StoreRequest], reply: Any) -> Sequence[StoreResult]: ...

    def split(self, requests: Sequence[StoreRequest]) -> Sequence[Sequence[int]]:
        """The positions of requests that one command can decide, command by command."""


def running_time_s(planned_s: float, took_s: float) -> float:
    """What counts of a slice of a wait. If it took twice as long as planned, this thread was not given its turn."""
    return took_s if took_s < 2 * planned_s else planned_s


def wait_running_time(wait: Callable[[float], Any], seconds: float) -> bool:
    """Whether `wait(seconds)` ended in time. Time in which this thread was not given the interpreter does not count."""
    slice_s, left_s = seconds / SLICES, seconds
    now_s = time.monotonic()
    gives_up_s = now_s + max(seconds, MAX_STARVED_S)
    while left_s > 0 and now_s < gives_up_s:
        if wait(slice_s):
            return True
        began_s, now_s = now_s, time.monotonic()
        left_s -= running_time_s(slice_s, now_s - began_s)
    return bool(wait(0.0))


class Connection:
    """One connected socket. The kernel bounds its waits where it can, which spares Python a system call each time."""

    takes_frames = True

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._kernel_waits = type(sock) is socket.socket and os.name == "posix"
        if self._kernel_waits:
            sock.settimeout(None)
        self._reader: Any = hiredis.Reader(notEnoughData=NOTHING)
        self._buffer = bytearray(READ_BYTES)
        self._wait_s = 0.0
        self._worked = False

    def call(self, left_s: float, frame: bytes) -> Any:
        """The reply to one command within `left_s`. An error reply is returned as `hiredis.ReplyError`."""
        if not 0 <= self._wait_s - left_s < 0.001:
            self._limit_wait(left_s)
        answered = False
        try:
            self._socket.sendall(frame)
            while True:
                count = self._receive()
                if not count:
                    raise ConnectionLost("the server closed the connection", unanswered=self._worked and not answered)
                answered = True
                self._reader.feed(self._buffer, 0, count)
                reply = self._reader.gets()
                while isinstance(reply, hiredis.PushNotification):
                    reply = self._reader.gets()
                if reply is not NOTHING:
                    self._worked = True
                    return reply
        except (TimeoutError, BlockingIOError, SSLWantReadError):
            raise ConnectionLost("no answer within the deadline", late=True) from None
        except OSError as error:
            raise ConnectionLost(f"{type(error).__name__}: {error}", unanswered=self._worked and not answered) from None

    def _receive(self) -> int:
        """Read what is there, or wait for it. What came while this thread waited to run is read as well."""
        try:
            return self._socket.recv_into(self._buffer)  # type: ignore[no-any-return]
        except (TimeoutError, BlockingIOError):
            if self._kernel_waits:
                return self._socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT)  # type: ignore[no-any-return]
            self._socket.settimeout(0.0)
            try:
                return self._socket.recv_into(self._buffer)  # type: ignore[no-any-return]
            finally:
                self._socket.settimeout(self._wait_s)

    def _limit_wait(self, left_s: float) -> None:
        self._wait_s = left_s = max(0.001, left_s)
        if self._kernel_waits:
            time_value = struct.pack("ll", int(left_s), int(left_s % 1 * 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_value)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time_value)
        else:
            self._socket.settimeout(left_s)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


class ClientConnection:
    """A client that calls by itself, for a Cluster. Threads of its own call it, so that nobody waits too long."""

    takes_frames = False

    def __init__(self, client: Any, owned: bool) -> None:
        self._client = client
        self._owned = owned
        self._threads = ThreadPoolExecutor(CLUSTER_THREADS, "frontrow-limits")

    def call(self, left_s: float, words: tuple[Any, ...]) -> Any:
        """The reply to one command within `left_s`, as `Connection.call` returns it."""
        return self.call_all(left_s, (words,))[0]

    def call_all(self, left_s: float, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands that run at the same time."""
        calls = [self._threads.submit(self._client.execute_command, *words, NEVER_DECODE=True) for words in commands]
        try:
            if not wait_running_time(lambda slice_s: not wait(calls, slice_s).not_done, left_s):
                raise ConnectionLost("no answer within the deadline", late=True)
            return [self._reply(call) for call in calls]
        finally:
            for call in calls:
                call.cancel()

    def _reply(self, call: Future[Any]) -> Any:
        try:
            return call.result(0.0)
        except Exception as error:
            if type(error).__name__ == "NoScriptError":
                return hiredis.ReplyError(f"NOSCRIPT {error}")
            raise ConnectionLost(f"{type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._owned:
            disconnect_sync(self._client)


class _Waiter:
    """A thread that waits for its result or for its turn to call."""

    __slots__ = ("asker", "outcome", "request", "wake")

    def __init__(self, asker: Asker, request: StoreRequest) -> None:
        self.asker = asker
        self.request = request
        self.outcome: Any = None
        self.wake = threading.Lock()
        self.wake.acquire()

    def wait(self, seconds: float) -> bool:
        return self.wake.acquire(timeout=seconds)

    def tell(self, outcome: Any) -> None:
        self.outcome = outcome
        self.wake.release()


class BlockingCalls:
    """Decides the requests of all threads, one call at a time."""

    def __init__(self, source: RedisSource, deadline_s: float) -> None:
        self._source = source
        self._deadline_s = deadline_s
        self._turn_s = max(MIN_TURN_S, TURN_DEADLINES * deadline_s)
        self._lock = fork_safe_lock()
        begin_in_child(self._begin_in_child)
        self._begin()

    def _begin(self) -> None:
        """Start without connection and callers."""
        self._calling = False
        self._waiting: deque[_Waiter] = deque()
        self._connection: Connection | ClientConnection | None = None
        self._attempt: _Attempt | None = None

    def _begin_in_child(self) -> None:
        """Close the child's copy of the parent's socket, which the parent does not notice, and begin anew."""
        for connection in (self._connection, self._attempt and self._attempt.connection):
            if isinstance(connection, Connection):
                connection.close()
        self._begin()

    def decide(self, asker: Asker, request: StoreRequest) -> StoreResult:
        with self._lock:
            waiter = None
            if self._calling:
                if len(self._waiting) >= MAX_WAITING:
                    raise StoreDown(f"{MAX_WAITING} threads already wait for the limit store")
                waiter = _Waiter(asker, request)
                self._waiting.append(waiter)
            self._calling = True
        if waiter is not None:
            outcome = self._wait(waiter)
            if isinstance(outcome, StoreDown):
                raise outcome
            if outcome is not _LEAD:
                return outcome  # type: ignore[no-any-return]
        try:
            if self._waiting:
                return self._call_for_all(asker, request)
            return self._call(asker, (request,))[0]
        finally:
            self._hand_over()

    def _wait(self, waiter: _Waiter) -> Any:
        """The thread's result, or `_LEAD`, or `StoreDown` if others' calls took too long."""
        if not wait_running_time(waiter.wait, self._turn_s):
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        return waiter.outcome or StoreDown(f"the limit store was busy for {self._turn_s:g} s")

    def _call_for_all(self, asker: Asker, request: StoreRequest) -> StoreResult:
        """Make a call for this request and for those of the threads that wait: one command per store that asks."""
        own = _Waiter(asker, request)
        with self._lock:
            batch = [own, *(self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH - 1)))]
        by_asker: dict[Asker, list[_Waiter]] = {}
        for waiter in batch:
            by_asker.setdefault(waiter.asker, []).append(waiter)
        failure = StoreDown("the call was interrupted")
        try:
            for each, waiters in by_asker.items():
                results = self._call(each, [waiter.request for waiter in waiters])
                for waiter, result in zip(waiters, results, strict=True):
                    waiter.tell(result)
        except StoreDown as error:
            failure = error
        finally:
            for waiter in batch:
                if waiter.outcome is None:
                    waiter.tell(failure)
        if isinstance(own.outcome, StoreDown):
            raise own.outcome
        return own.outcome  # type: ignore[no-any-return]

    def _hand_over(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.pop().tell(_LEAD)  # the newest: it has asked last, so it is likely to run soon
            else:
                self._calling = False

    # -- one call, made by one thread at a time --------------------------------------------------------------------

    def _call(self, asker: Asker, requests: Sequence[StoreRequest]) -> Sequence[StoreResult]:
        started = time.perf_counter()
        try:
            try:
                results = asker.send(self._connection or self._connect(), requests, self._deadline_s)
            except ConnectionLost as lost:
                self._drop()
                if not lost.unanswered or any(request.op not in RETRYABLE for request in requests):
                    raise
                results = asker.send(self._connect(), requests, self._deadline_s)
        except ConnectionLost as lost:
            self._drop()
            asker.health.record_failure(str(lost))
            down = StoreDown(f"the limit store failed: {lost}")
            if lost.late:
                self._fail_waiting(down)
            raise down from None
        asker.health.record_success(time.perf_counter() - started)
        return results

    def _fail_waiting(self, down: StoreDown) -> None:
        """Tell all who wait that the store does not answer. It had its time, and they have waited for it as well."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            waiter.tell(down)

    def _connect(self) -> Connection | ClientConnection:
        """Wait for a connection. An attempt goes on after the deadline and serves later calls."""
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt(self._source)
        if not wait_running_time(attempt.done.wait, self._deadline_s):
            raise ConnectionLost("no connection within the deadline", late=True)
        self._attempt = None
        if attempt.connection is None:
            raise ConnectionLost(attempt.reason)
        self._connection = attempt.connection
        return attempt.connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if isinstance(connection, ClientConnection):
            self._connection = connection  # it keeps its nodes' connections in order by itself
        elif connection is not None:
            connection.close()

    def close(self) -> None:
        """Close the connection. A later call opens another."""
        connection, self._connection = self._connection, None
        attempt, self._attempt = self._attempt, None
        if connection is not None:
            connection.close()
        if attempt is not None:
            attempt.abandon()


class _Attempt:
    """An attempt to connect, made by a thread of its own: names are looked up and credentials fetched meanwhile."""

    def __init__(self, source: RedisSource) -> None:
        self._source = source
        self._abandoned = False
        self._lock = threading.Lock()
        self.done = threading.Event()
        self.connection: Connection | ClientConnection | None = None
        self.reason = ""
        threading.Thread(target=self._run, name="frontrow-limits-connect", daemon=True).start()

    def _run(self) -> None:
        try:
            sock, client = self._source.open_blocking()
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}"
        else:
            connection = Connection(sock) if sock is not None else ClientConnection(client, self._source.owns(client))
            with self._lock:
                self.connection = connection
                if self._abandoned:
                    connection.close()
        self.done.set()

    def abandon(self) -> None:
        """Close the connection as soon as it is there."""
        with self._lock:
            self._abandoned = True
            if self.connection is not None:
                self.connection.close()
