"""Limits in a SQLite file, for the processes of one machine: each batch of requests is one transaction.

The algorithms are those of algorithms.py themselves: a transaction reads the states, decides in Python and writes. A
process that wants to write while another does tries again until the deadline. The machine's clock decides, which all
its processes share. Event loops ask from a thread, so that they never wait for the disk.
"""

import asyncio
import os
import random
import re
import sqlite3
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from frontrow.core.errors import ConfigError
from frontrow.limits.algorithms import PARTS, State, carry_over, drained_parts
from frontrow.limits.quota import Quota
from frontrow.limits.stores.blocking_calls import BlockingCalls, ConnectionLost
from frontrow.limits.stores.memory import apply_rules
from frontrow.limits.stores.protocol import PEEK, RESET, QuotaSlot, StoreRequest, StoreResult, combine_verdicts
from frontrow.limits.stores.sql_asyncio import LoopCalls
from frontrow.limits.stores.state_names import SPARE_US, key_start, stored_key

SCHEMA = """
CREATE TABLE IF NOT EXISTS frontrow_limits_counts_1 (
    key TEXT PRIMARY KEY, state BLOB NOT NULL, expires_us INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS frontrow_limits_expiry_1 ON frontrow_limits_counts_1 (expires_us);
"""
READ = "SELECT state, expires_us FROM frontrow_limits_counts_1 WHERE key = ?"
WRITE = (
    "INSERT INTO frontrow_limits_counts_1 VALUES (?, ?, ?) "
    "ON CONFLICT (key) DO UPDATE SET state = excluded.state, expires_us = excluded.expires_us"
)
REWRITE = "UPDATE frontrow_limits_counts_1 SET state = ? WHERE key = ?"
FORGET = "DELETE FROM frontrow_limits_counts_1 WHERE key = ?"
CLEAN = (
    "DELETE FROM frontrow_limits_counts_1 WHERE key IN "
    "(SELECT key FROM frontrow_limits_counts_1 WHERE expires_us < ? ORDER BY expires_us LIMIT ?)"
)
EXAMPLE = "sqlite:////var/lib/shop/limits.db"
MAX_KEPT_US = 366 * 86_400_000_000
MIN_PAUSE_S, MAX_PAUSE_S = 0.0001, 0.002  # between two tries to write
MAX_FORK_WAIT_S = 1.0  # for a transaction that runs
_of_the_parent: list[object] = []  # connections that a forked child must not even close
_connections: "weakref.WeakSet[SqliteConnection]" = weakref.WeakSet()


class BucketSize(NamedTuple):
    """What of a quota its buckets' states depend on."""

    capacity: int
    drip: tuple[int, int]


def sqlite_path(url: str) -> Path:
    """The file that a URL names: `sqlite:///relative.db` or `sqlite:////absolute.db`."""
    path = url.removeprefix("sqlite:///")
    if not re.match(r"sqlite:///[^?#]+$", url) or path == ":memory:":
        message = f"store {url!r} names no file that processes can share; write {EXAMPLE}, or memory://"
        raise ConfigError(message, param="store")
    return Path(path)


class SqliteSource:
    """A SQLite file."""

    refusal = EXAMPLE
    serves_blocking = serves_asyncio = True

    def __init__(self, url: str) -> None:
        self._path = sqlite_path(url)
        self.identity = ("sqlite", self._path.absolute())
        self.shown = url

    def batches(self, slots: Sequence[QuotaSlot], prefix: str) -> "SqliteBatches":
        return SqliteBatches(slots, prefix)

    def blocking_calls(self, deadline_s: float) -> BlockingCalls:
        return BlockingCalls(lambda: SqliteConnection(self._path), deadline_s)

    def loop_calls(self, deadline_s: float) -> LoopCalls:
        async def open_connection() -> ThreadConnection:
            return ThreadConnection(self._path, deadline_s)

        return LoopCalls(open_connection, deadline_s)


class SqliteBatches:
    """Decides requests over `slots` in one transaction."""

    def __init__(self, slots: Sequence[QuotaSlot], prefix: str) -> None:
        self._slots = tuple(slots)
        self._key_starts = [key_start(prefix, slot) for slot in slots]

    def send(
        self, connection: "SqliteConnection", requests: Sequence[StoreRequest], left_s: float
    ) -> list[StoreResult]:
        writes = any(request.op != PEEK for request in requests)
        with connection.transaction(left_s, writes=writes) as rows:
            now_us = time.time_ns() // 1000
            results = [self._decide(rows, request, now_us) for request in requests]
            rows.write(now_us)
        return results

    async def asend(self, connection: "ThreadConnection", requests: Sequence[StoreRequest]) -> list[StoreResult]:
        return await connection.send(self, requests)

    def _decide(self, rows: "Rows", request: StoreRequest, server_us: int) -> StoreResult:
        now_us = server_us if request.now_us is None else request.now_us
        slots = [self._slots[at] for at in request.slots]
        keys = [self._key_starts[at] + stored_key(key) for at, key in zip(request.slots, request.keys, strict=True)]
        states = [rows.read(key, slot.quota) for key, slot in zip(keys, slots, strict=True)]
        verdicts, after = apply_rules(request, slots, states, now_us)
        for key, slot, state in zip(keys, slots, after, strict=True):
            if state is not None:
                rows.change(key, slot.quota, state)
            elif request.op == RESET:
                rows.forget(key)
        return combine_verdicts(slots, verdicts)


class Rows:
    """The states that one transaction uses: each is read once and written once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._states: dict[str, tuple[int, ...] | None] = {}  # as they are stored
        self._expiries: dict[str, int] = {}
        self._changed: dict[str, Quota | None] = {}  # None: forgotten

    def read(self, key: str, quota: Quota) -> State | None:
        """The state of a key under a quota."""
        if key not in self._states:
            row = self._connection.execute(READ, (key,)).fetchone()
            self._states[key] = _unpack(row[0]) if row is not None else None
            if row is not None:
                self._expiries[key] = row[1]
        stored = self._states[key]
        if stored is None or not quota.is_bucket:
            return stored if stored is None or _fits(quota, stored) else None
        if len(stored) not in (4, 6):
            return None
        then, debt, unit, capacity, *total = stored
        return carry_over(quota, BucketSize(capacity, (0, unit)), (then, debt, *total))

    def change(self, key: str, quota: Quota, state: State) -> None:
        if quota.is_bucket:
            then, debt, *total = state
            state = (then, debt, quota.drip[1], quota.capacity, *total)
        self._states[key], self._changed[key] = tuple(state), quota

    def forget(self, key: str) -> None:
        self._states[key], self._changed[key] = None, None

    def write(self, now_us: int) -> None:
        """Write what has changed. Each new key deletes up to two that have expired, so the table needs no cleaner."""
        created = 0
        for key, quota in self._changed.items():
            state = self._states[key]
            if quota is None or state is None:
                self._connection.execute(FORGET, (key,))
                continue
            packed, kept_us = struct.pack(f"<{len(state)}q", *state), _kept_us(quota, state)
            if self._expiries.get(key, 0) >= now_us + kept_us:  # the expiry stays, so the index does not change
                self._connection.execute(REWRITE, (packed, key))
                continue
            created += key not in self._expiries
            self._connection.execute(WRITE, (key, packed, now_us + 2 * kept_us))
        if created:
            self._connection.execute(CLEAN, (now_us, 2 * created))


def _unpack(packed: Any) -> tuple[int, ...] | None:
    whole = isinstance(packed, bytes) and len(packed) % 8 == 0
    return struct.unpack(f"<{len(packed) // 8}q", packed) if whole else None


def _fits(quota: Quota, stored: Sequence[int]) -> bool:
    """Whether a window's state has as many numbers as it needs."""
    return {"fixed_window": 2, "sliding_counter": 3}.get(quota.algorithm, len(stored)) == len(stored)


def _kept_us(quota: Quota, state: Sequence[int]) -> int:
    """How long a state is kept after a change."""
    life_us = quota.life_us + SPARE_US
    if not quota.is_bucket:
        return life_us
    leak, unit = quota.drip
    kept_us = 2 * life_us if state[1] > quota.capacity * unit else life_us
    if len(state) == 6:  # until the total has drained at this rate
        left = max(0, state[4] - drained_parts(quota, state[0] - state[5])) / PARTS
        kept_us = max(kept_us, min(MAX_KEPT_US, life_us + round(left * unit / leak)))
    return kept_us


class SqliteConnection:
    """A connection that waits for other processes no longer than it is told. It is open from its first use on."""

    survives_failure = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        _connections.add(self)

    def open(self) -> sqlite3.Connection:
        """The open connection. It is opened anew after a fork."""
        if self._connection is None:
            self._connection = _open(self._path)
        return self._connection

    def transaction(self, left_s: float, *, writes: bool) -> "_Transaction":
        return _Transaction(self, left_s, writes)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def close_in_child(self) -> None:
        """Leave what could not be closed before the fork as it is: SQLite would release the parent's locks."""
        _of_the_parent.append(self._connection)
        self._connection = None


def _open(path: Path) -> sqlite3.Connection:
    """Open a file, and create what the limiter needs. It does not wait for other processes: a transaction tries again,
    in shorter steps than SQLite would."""
    connection = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False, cached_statements=16)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a crash of the machine may lose the last counts
        exists = "SELECT count(*) FROM sqlite_master WHERE name = 'frontrow_limits_expiry_1'"
        if not connection.execute(exists).fetchone()[0]:
            connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


class _Transaction:
    """Begins on entry, commits on exit, and rolls back after an error. Errors of SQLite are `ConnectionLost`."""

    def __init__(self, connection: SqliteConnection, left_s: float, writes: bool) -> None:
        self._owner = connection
        self._left_s = left_s
        self._begin = "BEGIN IMMEDIATE" if writes else "BEGIN"
        self._lock: threading.Lock | None = None  # the one that is held

    def __enter__(self) -> Rows:
        gives_up_s = time.monotonic() + self._left_s
        while not self._begins(gives_up_s):  # until the deadline
            if time.monotonic() >= gives_up_s:
                raise ConnectionLost("other processes wrote during the whole deadline", late=True)
            time.sleep(random.uniform(MIN_PAUSE_S, MAX_PAUSE_S))
        return Rows(self._owner.open())

    def _begins(self, gives_up_s: float) -> bool:
        """Begin, if no other process is writing. Nothing of SQLite is held while this one waits for them."""
        lock = _Fork.lock
        if not lock.acquire(timeout=max(0.0, gives_up_s - time.monotonic())):
            return False
        begun = False
        try:
            self._owner.open().execute(self._begin)
            self._lock, begun = lock, True
        except sqlite3.Error as error:
            if not _is_busy(error):
                raise _lost(error) from None
        finally:
            if not begun:
                lock.release()
        return begun

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        assert self._lock is not None, "a transaction that began holds the lock"
        try:
            self._owner.open().execute("ROLLBACK" if error is not None else "COMMIT")
        except sqlite3.Error as failure:
            raise _lost(failure) from None
        finally:
            self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise _lost(error) from None


class _Fork:
    """No connection may be open when this process forks: SQLite keeps the locks of a process in its memory, and the
    child would take the parent's for its own. So they are closed before a fork, and opened again when they are used."""

    lock = threading.Lock()  # held during each transaction
    taken = False

    @classmethod
    def before(cls) -> None:
        cls.taken = cls.lock.acquire(timeout=MAX_FORK_WAIT_S)
        if cls.taken:
            for connection in list(_connections):
                connection.close()

    @classmethod
    def after_in_parent(cls) -> None:
        if cls.taken:
            cls.lock.release()

    @classmethod
    def after_in_child(cls) -> None:
        cls.lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_Fork.before, after_in_parent=_Fork.after_in_parent, after_in_child=_Fork.after_in_child)


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _lost(error: sqlite3.Error) -> ConnectionLost:
    return ConnectionLost(f"{type(error).__name__}: {error}")


class ThreadConnection:
    """A connection that a thread of its own uses, for an event loop. A call that hangs keeps the next ones waiting."""

    survives_failure = True

    def __init__(self, path: Path, deadline_s: float) -> None:
        self._path = path
        self._deadline_s = deadline_s
        self._connection: SqliteConnection | None = None
        self._thread = ThreadPoolExecutor(1, "frontrow-limits-sqlite")
        self._last: Future[list[StoreResult]] | None = None

    async def send(self, batches: SqliteBatches, requests: Sequence[StoreRequest]) -> list[StoreResult]:
        if self._last is not None and not self._last.done():
            raise ConnectionLost("the last call has not ended yet")
        self._last = self._thread.submit(self._send, batches, requests)
        return await asyncio.wrap_future(self._last)

    def _send(self, batches: SqliteBatches, requests: Sequence[StoreRequest]) -> list[StoreResult]:
        try:
            if self._connection is None:
                self._connection = SqliteConnection(self._path)
            return batches.send(self._connection, requests, self._deadline_s)
        except (sqlite3.Error, ConnectionLost) as error:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
            raise _lost(error) if isinstance(error, sqlite3.Error) else error from None

    def give_up(self) -> None:
        """Nothing to close at once: the thread may be using the connection, and its own deadline ends the call."""

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def aclose(self) -> None:
        closing = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        await asyncio.wait((asyncio.wrap_future(closing),), timeout=self._deadline_s)
