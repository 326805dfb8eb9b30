"""Limits in PostgreSQL: each batch of requests is one call of the function `decide` in `sql/postgresql.sql`.

asyncpg serves event loops and psycopg serves threads. A connection creates what it needs in the database if that is not
there yet. psycopg is used by its layer over libpq, so that every wait has a deadline.
"""

import os
import re
import selectors
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import mask_password
from frontrow.limits.quota import Decision
from frontrow.limits.stores.blocking_calls import BlockingCalls, ConnectionLost, wait_running_time
from frontrow.limits.stores.protocol import QuotaSlot, StoreRequest, StoreResult
from frontrow.limits.stores.sql_asyncio import LoopCalls
from frontrow.limits.stores.state_names import SPARE_US, key_start, state_of, stored_key

CONNECT_TIMEOUT_S = 5
KINDS = {"fixed_window": 1, "sliding_log": 2, "sliding_counter": 3, "bucket": 4, "calendar_month": 5}
EXISTS = "SELECT to_regprocedure('frontrow_limits_1.decide(text[], bigint[], bigint[])') IS NOT NULL"
DECIDE = "SELECT frontrow_limits_1.decide($1::text[], $2::bigint[], $3::bigint[])"
PREPARED = b"frontrow_limits_decide_1"
FIELDS = 7  # of the result per request: see `decide`
NOT_COMMITTED = ("57P01", "57P02", "57P03", "40001", "40P01")  # the server stops, or asks to try again


class PostgresqlSource:
    """A PostgreSQL server at a URL as libpq reads it."""

    refusal = "postgresql://"
    serves_blocking = serves_asyncio = True  # the client that is missing is named when it is needed

    def __init__(self, url: str) -> None:
        self._url = url
        self.identity = url
        self.shown = mask_password(url)
        if find_missing("psycopg") and find_missing("asyncpg"):
            message = "a PostgreSQL store needs a client: pip install 'frontrow-limits[postgresql]'"
            raise ConfigError(message, param="store")
        if not re.match(r"postgres(ql)?://[^/]*/[^/?]+|postgres(ql)?://.*\?", url):
            message = f"store {self.shown!r} names no database; write postgresql://user@host:5432/database"
            raise ConfigError(message, param="store")

    def batches(self, slots: Sequence[QuotaSlot], prefix: str) -> "PostgresqlBatches":
        return PostgresqlBatches(slots, prefix)

    def blocking_calls(self, deadline_s: float) -> BlockingCalls:
        return BlockingCalls(lambda: open_blocking(self._url), deadline_s)

    def loop_calls(self, deadline_s: float) -> LoopCalls:
        return LoopCalls(lambda: open_asyncio(self._url), deadline_s)


class PostgresqlBatches:
    """Writes requests over `slots` as arguments of `decide`, and reads its result."""

    def __init__(self, slots: Sequence[QuotaSlot], prefix: str) -> None:
        self._key_starts = [key_start(prefix, slot) for slot in slots]
        self._names_and_limits = [(slot.rule.name, slot.quota.capacity) for slot in slots]
        self._numbers = [number for slot in slots for number in _slot_numbers(slot)]
        self._numbers_text = _array_text(self._numbers)

    def send(
        self, connection: "BlockingConnection", requests: Sequence[StoreRequest], left_s: float
    ) -> list[StoreResult]:
        keys, numbers = self._arguments(requests)
        names = ('{"' + '","'.join(keys) + '"}').encode()  # a key has no quotes and no backslashes: `stored_key`
        return self._results(requests, connection.call([names, _array_text(numbers), self._numbers_text], left_s))

    async def asend(self, connection: "LoopConnection", requests: Sequence[StoreRequest]) -> list[StoreResult]:
        keys, numbers = self._arguments(requests)
        return self._results(requests, await connection.call((keys, numbers, self._numbers)))

    def _arguments(self, requests: Sequence[StoreRequest]) -> tuple[list[str], list[int]]:
        """The keys, sorted and each once, and the numbers that say what to do with them."""
        starts = self._key_starts
        named = [
            [starts[slot] + stored_key(key) for slot, key in zip(request.slots, request.keys, strict=True)]
            for request in requests
        ]
        keys = sorted({key for of_request in named for key in of_request})
        position = {key: at for at, key in enumerate(keys, 1)}
        numbers: list[int] = []
        for request, of_request in zip(requests, named, strict=True):
            now_us = -1 if request.now_us is None else request.now_us
            numbers += (request.op, request.cost, now_us, len(request.slots))
            for slot, key in zip(request.slots, of_request, strict=True):
                numbers += (position[key], slot + 1)
        return keys, numbers

    def _results(self, requests: Sequence[StoreRequest], numbers: Sequence[int]) -> list[StoreResult]:
        results = []
        for at, request in enumerate(requests):
            allowed, rule, remaining, reset, retry, delay, mask = numbers[FIELDS * at : FIELDS * (at + 1)]
            name, capacity = self._names_and_limits[request.slots[rule - 1]]
            decision = Decision(allowed == 1, name, capacity, remaining, reset, retry, delay)
            shadowed = tuple(at for at in range(len(request.slots)) if mask >> at & 1) if mask else ()
            results.append(StoreResult(decision, shadowed))
        return results


def _slot_numbers(slot: QuotaSlot) -> tuple[int, ...]:
    quota = slot.quota
    first = (KINDS[state_of(quota)], int(slot.rule.shadow), quota.life_us + SPARE_US)
    if quota.is_bucket:
        return (*first, quota.capacity, quota.life_us, *quota.drip, int(quota.algorithm == "leaky_queue"))
    return (*first, quota.limit, quota.period_us, quota.grain_us, 0, 0)


def _array_text(numbers: Sequence[int]) -> bytes:
    return ("{" + ",".join(map(str, numbers)) + "}").encode()


@cache
def schema_sql() -> str:
    """The statements that create what the limiter needs. Safe to run again, and by many servers at once."""
    script = files("frontrow.limits.stores").joinpath("sql/postgresql.sql").read_text("utf-8")
    return f"BEGIN;\n{script}\nCOMMIT;"


@cache
def find_missing(module: str) -> bool:
    """Whether a client is not installed."""
    try:
        __import__(module)
    except ImportError:
        return True
    return False


# -- asyncio -----------------------------------------------------------------------------------------------------------


class LoopConnection:
    """A connection of asyncpg."""

    survives_failure = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._worked = False

    async def call(self, arguments: tuple[Any, ...]) -> Sequence[int]:
        import asyncpg

        try:
            numbers: Sequence[int] = await self._connection.fetchval(DECIDE, *arguments)
        except asyncpg.PostgresError as error:
            raise _refused(error.sqlstate, f"{type(error).__name__}: {error}", self._worked) from None
        except (asyncpg.InterfaceError, OSError) as error:
            raise ConnectionLost(f"{type(error).__name__}: {error}", unanswered=self._worked) from None
        self._worked = True
        return numbers

    def give_up(self) -> None:
        """Close at once: the answer of the call that runs must not be taken for another's."""
        self._connection.terminate()

    async def aclose(self) -> None:
        with suppress(TimeoutError, OSError):
            await self._connection.close(timeout=CONNECT_TIMEOUT_S)


async def open_asyncio(url: str) -> LoopConnection:
    """Connect, and create what the limiter needs in the database."""
    if find_missing("asyncpg"):
        raise ConfigError("asyncio calls to PostgreSQL need asyncpg: pip install 'frontrow-limits[postgresql]'")
    import asyncpg

    connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT_S)
    try:
        if not await connection.fetchval(EXISTS, timeout=CONNECT_TIMEOUT_S):
            await connection.execute(schema_sql(), timeout=2 * CONNECT_TIMEOUT_S)
    except BaseException:
        connection.terminate()
        raise
    return LoopConnection(connection)


# -- threads -----------------------------------------------------------------------------------------------------------


class BlockingConnection:
    """A connection of psycopg that waits no longer than it is told."""

    survives_failure = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._libpq = connection.pgconn
        self._libpq.nonblocking = 1
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._libpq.socket, selectors.EVENT_READ)
        self._worked = False

    def call(self, arguments: Sequence[bytes], left_s: float) -> list[int]:
        from psycopg.pq import ExecStatus

        result = self._finish(lambda: self._libpq.send_query_prepared(PREPARED, arguments), left_s)
        if result is None or result.status != ExecStatus.TUPLES_OK:
            raise self._refusal(result)
        self._worked = True
        return [int(number) for number in result.get_value(0, 0)[1:-1].split(b",")]

    def query(self, statement: str, values: Sequence[str], left_s: float) -> list[tuple[str, ...]]:
        """The rows of a statement with `$1` for values, as texts."""
        from psycopg.pq import ExecStatus

        given = [value.encode() for value in values]
        result = self._finish(lambda: self._libpq.send_query_params(statement.encode(), given), left_s)
        if result is None or result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise self._refusal(result)
        columns = range(result.nfields)
        return [tuple([result.get_value(row, at).decode() for at in columns]) for row in range(result.ntuples)]

    def prepare(self, left_s: float) -> None:
        """Let the server read the statement once."""
        from psycopg.pq import ExecStatus

        result = self._finish(lambda: self._libpq.send_prepare(PREPARED, DECIDE.encode()), left_s)
        if result is None or result.status != ExecStatus.COMMAND_OK:
            raise self._refusal(result)

    def _finish(self, send: Callable[[], None], left_s: float) -> Any:
        """Send something, and wait for the whole answer."""
        from psycopg import OperationalError

        try:
            send()
            self._write(left_s)
            self._read(left_s)
            result = self._libpq.get_result()
            self._read(left_s)
            while self._libpq.get_result() is not None:  # at most the end of this call's answer
                self._read(left_s)
        except OperationalError as error:
            raise ConnectionLost(f"{type(error).__name__}: {error}".strip(), unanswered=self._worked) from None
        return result

    def _refusal(self, result: Any) -> ConnectionLost:
        from psycopg.pq import DiagnosticField

        code = result.error_field(DiagnosticField.SQLSTATE) if result is not None else None
        if not code:  # libpq itself found the connection closed
            return ConnectionLost(_error_text(self._libpq, result), unanswered=self._worked)
        return _refused(code.decode(), _error_text(self._libpq, result), self._worked)

    def _write(self, left_s: float) -> None:
        while self._libpq.flush():
            self._selector.modify(self._libpq.socket, selectors.EVENT_READ | selectors.EVENT_WRITE)
            try:
                self._wait(left_s)
                self._libpq.consume_input()
            finally:
                self._selector.modify(self._libpq.socket, selectors.EVENT_READ)

    def _read(self, left_s: float) -> None:
        while self._libpq.is_busy():
            self._wait(left_s)
            self._libpq.consume_input()

    def _wait(self, left_s: float) -> None:
        if not wait_running_time(self._selector.select, left_s):
            raise ConnectionLost("no answer within the deadline", late=True)

    def close(self) -> None:
        self._selector.close()
        self._connection.close()

    def close_in_child(self) -> None:
        """Put nothing in the place of the socket first: libpq would tell the server that the parent leaves."""
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, self._libpq.socket)
        os.close(nothing)
        self.close()


def open_blocking(url: str) -> BlockingConnection:
    """Connect, and create what the limiter needs in the database. May take as long as its timeouts."""
    opened = connect_blocking(url, EXISTS, schema_sql())
    try:
        opened.prepare(CONNECT_TIMEOUT_S)
    except BaseException:
        opened.close()
        raise
    return opened


def connect_blocking(url: str, exists: str, schema: str) -> BlockingConnection:
    """Connect, and run `schema` unless the query `exists` says that it is there."""
    if find_missing("psycopg"):
        raise ConfigError("blocking calls to PostgreSQL need psycopg: pip install 'frontrow-limits[postgresql]'")
    import psycopg

    connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
    try:
        row = connection.execute(exists.encode()).fetchone()
        if row is None or not row[0]:
            connection.execute(schema.encode())
        return BlockingConnection(connection)
    except BaseException:
        connection.close()
        raise


def _error_text(libpq: Any, result: Any) -> str:
    message: bytes = (result and result.error_message) or libpq.error_message or b"no answer"
    return " ".join(message.decode("utf-8", "replace").split())[:500]


def _refused(code: str | None, reason: str, worked: bool) -> ConnectionLost:
    """An error that the client raised or the server answered. If the connection was lost (08…), or the server committed
    nothing for a reason of its own, the call may be repeated."""
    lost = code is not None and (code.startswith("08") or code in NOT_COMMITTED)
    return ConnectionLost(reason, unanswered=worked and lost)
