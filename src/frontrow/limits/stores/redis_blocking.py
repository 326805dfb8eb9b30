"""Blocking calls to Redis. Threads that ask at the same time share one connection and one call.

The first thread makes a call for itself. Threads that come meanwhile wait; when the call ends, the newest of them makes
the next call for all. So there are never more connections than one, however many threads ask, and no thread waits
longer than its deadline: neither for its turn, nor for an answer, nor while connecting, which a thread of its own does.

A server may close a connection that was idle. If that shows only when a request has been sent, it is sent once more,
provided that counting it twice can only make a rule stricter (`RETRYABLE`).
"""

import os
import socket
import struct
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import hiredis

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
NOTHING = object()  # the reader has no whole reply yet
_LEAD = object()  # given to a waiting thread in place of a result: make the next call


class ConnectionLost(Exception):
    """The connection broke. `unanswered`: after it had worked, and before a byte of this call's reply."""

    def __init__(self, reason: str, *, unanswered: bool = False) -> None:
        super().__init__(reason)
        self.unanswered = unanswered


class Connection:
    """One connected socket. The kernel bounds its waits where it can, which spares Python a system call each time."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._kernel_waits = type(sock) is socket.socket and os.name == "posix"
        if self._kernel_waits:
            sock.settimeout(None)
        self._reader: Any = hiredis.Reader(notEnoughData=NOTHING)
        self._buffer = bytearray(READ_BYTES)
        self._wait_s = 0.0
        self._worked = False

    def call(self, left_s: float, words: tuple[Any, ...]) -> Any:
        """The reply to one command within `left_s`. An error reply is returned as `hiredis.ReplyError`."""
        if not 0 <= self._wait_s - left_s < 0.001:
            self._limit_wait(left_s)
        answered = False
        try:
            self._socket.sendall(hiredis.pack_command(words))
            while True:
                count = self._socket.recv_into(self._buffer)
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
        except (TimeoutError, BlockingIOError):
            raise ConnectionLost("no answer within the deadline") from None
        except OSError as error:
            raise ConnectionLost(f"{type(error).__name__}: {error}", unanswered=self._worked and not answered) from None

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

    def __init__(self, client: Any, owned: bool) -> None:
        self._client = client
        self._owned = owned
        self._threads = ThreadPoolExecutor(CLUSTER_THREADS, "frontrow-limits")

    def call(self, left_s: float, words: tuple[Any, ...]) -> Any:
        """The reply to one command within `left_s`, as `Connection.call` returns it."""
        return self.call_all(left_s, (words,))[0]

    def call_all(self, left_s: float, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands that run at the same time."""
        due_s = time.monotonic() + left_s
        calls = [self._threads.submit(self._client.execute_command, *words, NEVER_DECODE=True) for words in commands]
        try:
            return [self._reply(call, due_s) for call in calls]
        finally:
            for call in calls:
                call.cancel()

    def _reply(self, call: Future[Any], due_s: float) -> Any:
        try:
            return call.result(max(0.001, due_s - time.monotonic()))
        except TimeoutError:
            raise ConnectionLost("no answer within the deadline") from None
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

    __slots__ = ("outcome", "request", "wake")

    def __init__(self, request: StoreRequest) -> None:
        self.request = request
        self.outcome: Any = None
        self.wake = threading.Lock()
        self.wake.acquire()

    def tell(self, outcome: Any) -> None:
        self.outcome = outcome
        self.wake.release()


class BlockingCalls:
    """Decides requests by `send(connection, requests, due_s)`, one call at a time."""

    def __init__(
        self,
        source: RedisSource,
        send: Callable[[Any, Sequence[StoreRequest], float], Sequence[StoreResult]],
        deadline_s: float,
        health: StoreHealth,
    ) -> None:
        self._source = source
        self._send = send
        self._deadline_s = deadline_s
        self._health = health
        self.begin()
        _all_calls.add(self)

    def begin(self) -> None:
        """Start without connection and callers. After a fork those of the parent are not the child's."""
        self._lock = threading.Lock()
        self._calling = False
        self._waiting: deque[_Waiter] = deque()
        self._connection: Connection | ClientConnection | None = None
        self._attempt: _Attempt | None = None

    def decide(self, request: StoreRequest) -> StoreResult:
        due_s = time.monotonic() + self._deadline_s
        with self._lock:
            waiter = None
            if self._calling:
                if len(self._waiting) >= MAX_WAITING:
                    raise StoreDown(f"{MAX_WAITING} threads already wait for the limit store")
                waiter = _Waiter(request)
                self._waiting.append(waiter)
            self._calling = True
        if waiter is not None:
            outcome = self._wait(waiter, due_s)
            if isinstance(outcome, StoreDown):
                raise outcome
            if outcome is not _LEAD:
                return outcome  # type: ignore[no-any-return]
        try:
            if self._waiting:
                return self._call_for_all(request, due_s)
            return self._call((request,), due_s)[0]
        finally:
            self._hand_over()

    def _wait(self, waiter: _Waiter, due_s: float) -> Any:
        """The thread's result, or `_LEAD`, or `StoreDown` if its time is up."""
        if not waiter.wake.acquire(timeout=max(0.0, due_s - time.monotonic())):
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
        outcome = waiter.outcome
        if outcome is _LEAD and due_s - time.monotonic() < self._deadline_s / 2:
            self._hand_over()  # too little time to judge the store by: whoever comes next calls
            outcome = None
        return outcome or StoreDown(f"the limit store did not answer within {self._deadline_s * 1000:g} ms")

    def _call_for_all(self, request: StoreRequest, due_s: float) -> StoreResult:
        """Make a call for this request and for those of the threads that wait."""
        with self._lock:
            others = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_BATCH - 1))]
        outcomes: Sequence[Any] = [StoreDown("the call was interrupted")] * len(others)
        try:
            result, *outcomes = self._call((request, *[other.request for other in others]), due_s)
        except StoreDown as error:
            outcomes = [error] * len(others)
            raise
        finally:
            for other, outcome in zip(others, outcomes, strict=True):
                other.tell(outcome)
        return result

    def _hand_over(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.pop().tell(_LEAD)  # the newest, who has most of its deadline left
            else:
                self._calling = False

    # -- one call, made by one thread at a time --------------------------------------------------------------------

    def _call(self, requests: Sequence[StoreRequest], due_s: float) -> Sequence[StoreResult]:
        started = time.perf_counter()
        try:
            try:
                results = self._send(self._connection or self._connect(due_s), requests, due_s)
            except ConnectionLost as lost:
                self._drop()
                if not lost.unanswered or any(request.op not in RETRYABLE for request in requests):
                    raise
                results = self._send(self._connect(due_s), requests, due_s)
        except ConnectionLost as lost:
            self._drop()
            self._health.record_failure(str(lost))
            raise StoreDown(f"the limit store failed: {lost}") from None
        self._health.record_success(time.perf_counter() - started)
        return results

    def _connect(self, due_s: float) -> Connection | ClientConnection:
        """Wait for a connection until `due_s`. An attempt goes on after that and serves later calls."""
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt(self._source)
        if not attempt.done.wait(max(0.0, due_s - time.monotonic())):
            raise ConnectionLost("no connection within the deadline")
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


_all_calls: "weakref.WeakSet[BlockingCalls]" = weakref.WeakSet()


def _begin_in_child() -> None:
    for calls in list(_all_calls):
        calls.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_in_child)


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
