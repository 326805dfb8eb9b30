"""Blocking calls to a shared store. Threads that ask at the same time share one connection and one call.

The first thread makes a call for itself. Threads that come meanwhile wait; when the call ends, the newest of them makes
the next call for all. So there are never more connections than one, however many threads ask. What a connection is, its
store says: `redis_blocking`, `postgresql` or `sqlite`.

The deadline is the store's time: from when a call is sent until its answer is there to be read. Connecting, which a
thread of its own does, has the same deadline. When the store misses it, everybody who waits is told so at once. The
time in which this process did not get to run, because hundreds of threads want the interpreter, is not the store's: it
is not counted (`wait_running_time`), and an answer that came meanwhile is still read. Still, every wait has a bound.

A server may close a connection that was idle. If that shows only when a request has been sent, it is sent once more,
provided that counting it twice can only make a rule stricter (`RETRYABLE`).
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from frontrow.core.forks import begin_in_child, fork_safe_lock
from frontrow.limits.quota import StoreDown
from frontrow.limits.stores.protocol import CHECK, PEEK, StoreRequest, StoreResult
from frontrow.limits.stores.store_health import StoreHealth

MAX_BATCH = 256
MAX_WAITING = 10_000
RETRYABLE = frozenset((CHECK, PEEK))
SLICES = 16  # of a wait
MAX_STARVED_S = 10.0  # of a wait, however little of it counts
MIN_TURN_S, TURN_DEADLINES = 1.0, 4  # how long a thread waits for the calls of others before the store counts as down
_LEAD = object()  # given to a waiting thread in place of a result: make the next call


class ConnectionLost(Exception):
    """The connection broke. `unanswered`: after it had worked, and before a byte of this call's reply. `late`: the
    store missed its deadline."""

    def __init__(self, reason: str, *, unanswered: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.unanswered = unanswered
        self.late = late


class Asker(Protocol):
    """A store that asks: it sends its requests over a connection, and knows how its calls went."""

    @property
    def health(self) -> StoreHealth: ...

    def send(self, connection: Any, requests: Sequence[StoreRequest], left_s: float) -> Sequence[StoreResult]:
        """Decide `requests` over a connection that has `left_s` for each command."""


class BlockingConnection(Protocol):
    """What a thread sends its requests over."""

    @property
    def survives_failure(self) -> bool:
        """Whether it keeps itself in order, so that the next call can use it after one that failed."""

    def close(self) -> None: ...

    def close_in_child(self) -> None:
        """Close a forked child's copy without a word to the server, which the parent goes on talking to."""


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

    def __init__(self, open_connection: Callable[[], BlockingConnection], deadline_s: float) -> None:
        self._open_connection = open_connection
        self._deadline_s = deadline_s
        self._turn_s = max(MIN_TURN_S, TURN_DEADLINES * deadline_s)
        self._lock = fork_safe_lock()
        begin_in_child(self._begin_in_child)
        self._begin()

    def _begin(self) -> None:
        """Start without connection and callers."""
        self._calling = False
        self._waiting: deque[_Waiter] = deque()
        self._connection: BlockingConnection | None = None
        self._attempt: _Attempt | None = None

    def _begin_in_child(self) -> None:
        """Close the child's copy of the parent's connection, which the parent does not notice, and begin anew."""
        attempted = self._attempt.connection if self._attempt is not None else None
        for connection in (self._connection, attempted):
            if connection is not None:
                connection.close_in_child()
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

    def _connect(self) -> BlockingConnection:
        """Wait for a connection. An attempt goes on after the deadline and serves later calls."""
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt(self._open_connection)
        if not wait_running_time(attempt.done.wait, self._deadline_s):
            raise ConnectionLost("no connection within the deadline", late=True)
        self._attempt = None
        if attempt.connection is None:
            raise ConnectionLost(attempt.reason)
        self._connection = attempt.connection
        return attempt.connection

    def _drop(self) -> None:
        connection = self._connection
        if connection is not None and not connection.survives_failure:
            self._connection = None
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

    def __init__(self, open_connection: Callable[[], BlockingConnection]) -> None:
        self._open_connection = open_connection
        self._abandoned = False
        self._lock = threading.Lock()
        self.done = threading.Event()
        self.connection: BlockingConnection | None = None
        self.reason = ""
        threading.Thread(target=self._run, name="frontrow-limits-connect", daemon=True).start()

    def _run(self) -> None:
        try:
            connection = self._open_connection()
        except Exception as error:
            self.reason = f"{type(error).__name__}: {error}"
        else:
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
