"""The SQL stores: exact for callers of several processes, created once, cleaned by use, back after a failure."""

import asyncio
import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from typer.testing import CliRunner

from frontrow.cli.limits import app
from frontrow.core.errors import ConfigError
from frontrow.limits import ConcurrencyLimiter, Limiter, Quota, Rule
from frontrow.limits.config import load_config
from frontrow.limits.quota import ALGORITHMS
from frontrow.limits.stores import postgresql, sqlite
from frontrow.limits.stores.protocol import CHECK, REFUND, QuotaSlot, StoreRequest
from frontrow.testing.clock import ManualClock
from tests.limits.shared_stores import open_shared
from tests.support.eventually import eventually, eventually_sync
from tests.support.servers import Postgres

pytestmark = pytest.mark.timeout(120)
both_databases = pytest.mark.parametrize("sql_url", ["postgresql", "sqlite"], indirect=True)

CROWD = """
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from frontrow.limits import Limiter, Rule
from frontrow.limits.stores import postgresql, sqlite
url, algorithm, sabotage = sys.argv[1:]
if sabotage == "postgresql":
    whole = postgresql.schema_sql()
    assert "FOR UPDATE;" in whole
    broken = whole.replace("FOR UPDATE;", ";").replace("IF found_rows = 1 THEN", "IF pg_sleep(0.05) IS NOT NULL THEN")
    postgresql.schema_sql = lambda: broken
rules = [Rule("one", f"100/366 days {algorithm}"), Rule("all", "100000/366 days", per=())]
limiter = Limiter(rules, store=url, deadline_s=10.0)
def ask(_):
    return limiter.check("one").allowed
async def ask_all():
    async with limiter:
        return sum(d.allowed for d in await asyncio.gather(*(limiter.acheck("one") for _ in range(30))))
sys.stdin.readline()
with ThreadPoolExecutor(15) as threads:
    won = sum(threads.map(ask, range(30)))
won += asyncio.run(ask_all())
assert limiter.stats.store_errors == 0, limiter.stats.store_error
print(won)
"""


def admitted_by_processes(url: str, algorithm: str, sabotage: str = "") -> int:
    """What 4 processes admit together, each with 15 threads and then 30 tasks: 240 calls for 100 units."""
    command = [sys.executable, "-c", CROWD, url, algorithm, sabotage]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(command, **pipes) for _ in range(4)]
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    return sum(int(child.communicate(timeout=100)[0]) for child in children)


@both_databases
@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "token_bucket"])
def test_l10_the_callers_of_four_processes_get_exactly_what_is_there(sql_url: str, algorithm: str) -> None:
    """L8 L10: 60 callers at once in each of 4 processes, of which all start on a database without the limiter."""
    assert admitted_by_processes(sql_url, algorithm) == 100


KILLED = """
import os, sys
from frontrow.limits import Limiter, Rule
url, algorithm = sys.argv[1:]
rules = [Rule("one", f"200/366 days {algorithm}"), Rule("all", f"1000/366 days {algorithm}", per=())]
limiter = Limiter(rules, store=url, deadline_s=10.0)
while os.read(0, 1) and limiter.check("fan").allowed:
    os.write(1, b"y")
assert limiter.stats.store_errors == 0, limiter.stats.store_error
"""


@both_databases
@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "token_bucket"])
def test_processes_that_are_killed_leave_whole_counts_and_no_lock(sql_url: str, algorithm: str) -> None:
    """Each process but the last is killed with SIGKILL while it has calls to make. A kill loses one unit at most."""

    def run(most: int) -> int:
        command = [sys.executable, "-c", KILLED, sql_url, algorithm]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(b"?" * (most + 10))
            told = 0
            while told < most and child.stdout.read(1):
                told += 1
            child.kill()
            return told + len(child.stdout.read())

    with ThreadPoolExecutor(4) as threads:
        admitted = sum(threads.map(run, (3, 10, 17, 24)))
    assert admitted < 200
    admitted += run(1000)
    assert 196 <= admitted <= 200
    rules = [Rule("one", f"200/366 days {algorithm}"), Rule("all", f"1000/366 days {algorithm}", per=())]
    with Limiter(rules, store=sql_url, deadline_s=10.0) as limiter:
        assert limiter.peek("fan").rule == "one"
    with Limiter(rules[1], store=sql_url, deadline_s=10.0) as limiter:
        assert limiter.peek("anybody").remaining in (800, 801), "both rules were charged, or none"


def test_canary_a_function_that_does_not_lock_its_rows_is_caught(postgres_url: str) -> None:
    """On a busy machine the processes may miss each other once, but not with every algorithm."""
    algorithms = ("fixed_window", "sliding_log", "token_bucket")
    assert any(admitted_by_processes(postgres_url, algorithm, "postgresql") > 100 for algorithm in algorithms)


def test_canary_a_transaction_that_does_not_lock_the_file_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections read the same state before either writes: SQLite itself refuses the second."""
    quota = Quota.parse("1/day fixed_window")
    batches = sqlite.SqliteBatches([QuotaSlot(Rule("a", quota), "", quota)], "frl")
    first, second = sqlite.SqliteConnection(tmp_path / "a.db"), sqlite.SqliteConnection(tmp_path / "a.db")
    monkeypatch.setattr(sqlite._Fork, "lock", threading.RLock())
    request = StoreRequest((0,), ("fan",))
    batches.send(first, [StoreRequest((0,), ("other",))], 1.0)

    def decide_without_lock() -> None:
        with first.transaction(1.0, writes=False) as rows:
            batches._decide(rows, request, 1)
            batches.send(second, [request], 1.0)
            rows.write(1)

    with pytest.raises(sqlite.ConnectionLost, match="locked"):
        decide_without_lock()
    first.close()
    second.close()


@both_databases
def test_ten_servers_that_start_at_once_create_the_store_once(sql_url: str, tmp_path: Path) -> None:
    start = threading.Barrier(10)
    quota = Quota.parse("1000/day")

    def begin(_: int) -> int:
        store = open_shared(sql_url, [QuotaSlot(Rule("a", quota), "", quota)], prefix="start")
        start.wait(30)
        try:
            return store.decide(StoreRequest((0,), ("fan",))).decision.remaining
        finally:
            store.close()

    if sql_url.startswith("postgres"):
        with psycopg.connect(sql_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS frontrow_limits_1 CASCADE")
        opened = ThreadPoolExecutor(10)
        with opened:
            connections = list(opened.map(lambda _: postgresql.open_blocking(sql_url), range(10)))
        for each in connections:
            each.close()
    with ThreadPoolExecutor(10) as servers:
        assert sorted(servers.map(begin, range(10))) == list(range(990, 1000))


@both_databases
def test_l4_one_decision_over_three_rules_is_one_call(sql_url: str) -> None:
    rules = [Rule(f"r{n}", f"{n}00/hour") for n in (1, 2, 3)]
    with Limiter(rules, store=sql_url, deadline_s=5.0) as limiter:
        for ask in (limiter.check, limiter.check, limiter.peek, limiter.refund):
            ask("fan")
        assert limiter.stats.store_calls == 4


def test_a_decision_is_one_statement(own_postgres: Postgres) -> None:
    """The server says how often the function ran, and how many transactions there were besides."""
    with (
        Limiter([Rule("a", "9/hour"), Rule("b", "99/day")], store=own_postgres.url, deadline_s=5.0) as limiter,
        psycopg.connect(own_postgres.url, autocommit=True) as watcher,
    ):
        limiter.check("warm")
        watcher.execute("ALTER SYSTEM SET track_functions = 'pl'")
        watcher.execute("SELECT pg_reload_conf()")

        def calls() -> int:
            row = watcher.execute("SELECT calls FROM pg_stat_user_functions WHERE funcname = 'decide'").fetchone()
            return 0 if row is None else int(row[0])

        eventually_sync(lambda: limiter.check("until it is tracked") is not None and calls() > 0)
        limiter.close()  # a session that ends reports what it counted
        before = eventually_sync(calls)
        for n in range(20):
            limiter.check(f"fan{n}")
        limiter.close()
        assert eventually_sync(calls, until=lambda found: found >= before + 20) - before <= 30


# -- idle keys ---------------------------------------------------------------------------------------------------------


def stored_keys(url: str) -> dict[str, int]:
    """The keys of the store and when they expire."""
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(sqlite.sqlite_path(url))) as connection:
            rows = connection.execute("SELECT key, expires_us FROM frontrow_limits_counts_1").fetchall()
        return dict(rows)
    with psycopg.connect(url) as connected:
        return dict(connected.execute("SELECT key, expires_us FROM frontrow_limits_1.counts").fetchall())


def expire_all(url: str) -> None:
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(sqlite.sqlite_path(url))) as connection, connection:
            connection.execute("UPDATE frontrow_limits_counts_1 SET expires_us = 1")
        return
    with psycopg.connect(url) as connected:
        connected.execute("UPDATE frontrow_limits_1.counts SET expires_us = 1")


@both_databases
def test_l9_each_new_key_takes_at_most_two_idle_ones_away(sql_url: str) -> None:
    with Limiter("5/minute", store=sql_url, deadline_s=5.0) as limiter:
        for n in range(10):
            limiter.check(f"idle{n}")
        expire_all(sql_url)
        limiter.check("new1")
        assert len(stored_keys(sql_url)) == 9
        limiter.check("new1")
        assert len(stored_keys(sql_url)) == 9, "a key that is there cleans nothing"
        for n in range(2, 8):
            limiter.check(f"new{n}")
        assert sorted(key.rpartition("|")[2] for key in stored_keys(sql_url)) == [f"new{n}" for n in range(1, 8)]


@both_databases
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_l9_a_key_in_use_never_expires_and_its_index_rests(sql_url: str, algorithm: str) -> None:
    """Its expiry is moved only when it comes near, so most decisions change no index."""
    with Limiter(Quota.parse("50/hour", algorithm=algorithm), store=sql_url, deadline_s=5.0) as limiter:
        limiter.check("fan")
        [first] = stored_keys(sql_url).values()
        for _ in range(5):
            limiter.check("fan")
        assert [first] == list(stored_keys(sql_url).values())
        expire_all(sql_url)
        limiter.check("fan")
        [moved] = stored_keys(sql_url).values()
        assert moved >= first
        assert limiter.peek("fan").remaining == 43


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


@pytest.mark.parametrize("policy", ["open", "closed", "local"])
def test_l14_a_database_that_is_away_at_the_start_away_later_and_back(own_postgres: Postgres, policy: Any) -> None:
    clock = ManualClock()
    expected = {"open": [True] * 5, "closed": [False] * 5, "local": [True] * 3 + [False] * 2}[policy]
    limiter = Limiter(
        "3/minute token_bucket", store=own_postgres.url, on_store_down=policy, clock=clock, deadline_s=5.0
    )

    def answers(source: str, who: str) -> None:
        found = [limiter.check(who) for _ in range(5)]
        assert [each.source for each in found] == [source] * 5
        assert [each.allowed for each in found] == ([True] * 3 + [False] * 2 if source == "store" else expected)

    with limiter:
        own_postgres.kill()
        answers(policy, "start")
        own_postgres.start()
        clock.advance(1)
        answers("store", "there")
        own_postgres.kill()
        answers(policy, "away")
        own_postgres.start()
        clock.advance(1)
        answers("store", "back")
        assert limiter.stats.degraded[policy] == 10
        assert limiter.stats.store_error == ""


async def test_l14_a_database_that_does_not_get_on_costs_at_most_the_deadline(postgres_url: str) -> None:
    """Another session has locked the table. The answer is the policy's, and after three failures nobody asks."""
    clock = ManualClock()
    async with Limiter("100/minute", store=postgres_url, on_store_down="open", clock=clock) as limiter:

        async def is_there() -> bool:
            clock.advance(1)
            return (await limiter.acheck("warm")).source == "store" and limiter.check("warm").source == "store"

        await eventually(is_there)
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE frontrow_limits_1.counts")
            for _ in range(4):
                found = await asyncio.gather(*(limiter.acheck(f"fan{n}") for n in range(50)))
                assert {each.source for each in found} == {"open"}
            errors = limiter.stats.store_errors
            assert limiter.check("fan").source == "open"
            assert limiter.stats.store_errors == errors, "the breaker spares the rest"
        await eventually(is_there)


def test_the_schema_comes_back_when_somebody_drops_it(postgres_url: str) -> None:
    clock = ManualClock()
    with Limiter("5/minute", store=postgres_url, on_store_down="open", clock=clock, deadline_s=5.0) as limiter:
        limiter.check("fan")
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA frontrow_limits_1 CASCADE")
        assert limiter.check("fan").source == "open"
        assert limiter.check("fan").source == "store"


def test_a_user_who_may_not_create_is_told_so(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
    url = postgres_url.replace("postgres@", "reader@")
    with Limiter("5/minute", store=url, on_store_down="open", deadline_s=5.0) as limiter:
        assert limiter.check("fan").source == "open"
        assert "permission denied for database" in limiter.stats.store_error


def test_a_file_that_is_no_database_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(b"no database at all, only some text" * 100)
    with Limiter("5/minute", store=f"sqlite:///{tmp_path}/a.db", on_store_down="closed", deadline_s=5.0) as limiter:
        assert limiter.check("fan").source == "closed"
        assert "not a database" in limiter.stats.store_error


def test_a_writer_that_holds_the_file_costs_at_most_the_deadline(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with Limiter("5/minute", store=url, on_store_down="open") as limiter:
        eventually_sync(lambda: limiter.check("fan").source == "store")
        holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        assert limiter.check("fan").source == "open"
        assert "other processes wrote" in limiter.stats.store_error
        assert limiter.peek("fan").source == "store", "readers do not wait for writers"
        holder.execute("ROLLBACK")
        holder.close()
        assert limiter.check("fan").source == "store"


# -- connections that break --------------------------------------------------------------------------------------------


class CuttingProxy:
    """Stands before a server. When it is told to, it cuts the next call: before it is sent, or before its answer."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(f":{parts.port}", f":{self._listener.getsockname()[1]}")
        self.cut = ""
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(self._server)
            threading.Thread(target=self._pass_on, args=(client, server, "before"), daemon=True).start()
            threading.Thread(target=self._pass_on, args=(server, client, "after"), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, cut: str) -> None:
        with suppress(OSError):
            while sent := source.recv(65_536):
                if self.cut == cut:
                    self.cut = ""
                    break
                target.sendall(sent)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def proxy(limits_database: str) -> Iterator[CuttingProxy]:
    opened = CuttingProxy(limits_database)
    yield opened
    opened.close()


@pytest.mark.parametrize("door", ["blocking", "asyncio"])
@pytest.mark.parametrize(("cut", "charged"), [("before", 2), ("after", 3)])
def test_a_check_whose_connection_breaks_is_sent_once_more(
    proxy: CuttingProxy, door: str, cut: str, charged: int, loop: asyncio.AbstractEventLoop
) -> None:
    """Lost before the commit it was not counted, lost after it twice: stricter, never looser."""
    quota = Quota.parse("100/day")
    store = open_shared(proxy.url, [QuotaSlot(Rule("a", quota), "", quota)], prefix=f"{door}-{cut}")

    async def decide() -> int:
        return (await store.adecide(StoreRequest((0,), ("fan",), 1, None, CHECK))).decision.remaining

    def ask() -> int:
        if door == "asyncio":
            return loop.run_until_complete(decide())
        return store.decide(StoreRequest((0,), ("fan",), 1, None, CHECK)).decision.remaining

    assert ask() == 99
    proxy.cut = cut
    assert ask() == 100 - charged
    assert ask() == 99 - charged
    loop.run_until_complete(store.aclose())


@pytest.mark.parametrize("door", ["blocking", "asyncio"])
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_refund_whose_connection_breaks_is_not_repeated(
    proxy: CuttingProxy, door: str, cut: str, loop: asyncio.AbstractEventLoop
) -> None:
    quota = Quota.parse("100/day")
    store = open_shared(proxy.url, [QuotaSlot(Rule("a", quota), "", quota)], prefix=f"refund-{door}-{cut}")

    async def decide(cost: int, op: int) -> int:
        return (await store.adecide(StoreRequest((0,), ("fan",), cost, None, op))).decision.remaining

    def ask(cost: int, op: int) -> int:
        if door == "asyncio":
            return loop.run_until_complete(decide(cost, op))
        return store.decide(StoreRequest((0,), ("fan",), cost, None, op)).decision.remaining

    assert ask(50, CHECK) == 50
    proxy.cut = cut
    with pytest.raises(Exception, match="the limit store failed"):
        ask(10, REFUND)
    assert ask(1, CHECK) == (49 if cut == "before" else 59)
    loop.run_until_complete(store.aclose())


async def test_a_cancelled_call_leaves_a_connection_that_works(proxy: CuttingProxy) -> None:
    """The class of redis-py's CVE-2023-28858: everybody's answer is their own, over one connection."""
    async with Limiter("1/366 days token_bucket", store=proxy.url, deadline_s=5.0, prefix="cancelled") as limiter:
        await limiter.acheck("used")
        for round_ in range(10):
            tasks = [asyncio.create_task(limiter.acheck("used" if n % 2 else f"new{round_}.{n}")) for n in range(60)]
            await asyncio.sleep(0)
            for task in tasks[::7]:
                task.cancel()
            for n, answer in enumerate(await asyncio.gather(*tasks, return_exceptions=True)):
                if not isinstance(answer, BaseException):
                    assert answer.allowed == (n % 2 == 0)
    assert proxy.connections == 1


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("sqlite://", "names no file that processes can share"),
        ("sqlite:///:memory:", "names no file that processes can share"),
        ("sqlite:///a.db?mode=ro", "names no file that processes can share"),
        ("postgresql://ann:secret@db", r"store 'postgresql://\*\*\*@db' names no database"),
        ("mysql://db/shop", "is unknown; it starts with one of memory://, redis://"),
    ],
)
def test_a_wrong_url_is_one_sentence_without_a_password(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Limiter("1/day", store=url)


@pytest.mark.parametrize("option", [{"max_keys": 5}, {"record_refusals": True}, {"credential_provider": object()}])
def test_options_of_other_stores_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="SQL store"):
        Limiter("1/day", store="sqlite:///a.db", **option)


def test_permits_are_not_kept_in_sql() -> None:
    with pytest.raises(ConfigError, match="in memory or in Redis"):
        ConcurrencyLimiter(1, store="sqlite:///a.db", name="uploads")


@both_databases
def test_a_configuration_file_names_a_sql_store(sql_url: str, tmp_path: Path) -> None:
    """Its tiers are those of the file. Changing them while running is refused, because no other server would know."""
    file = tmp_path / "limits.toml"
    rule = '[[limits.rules]]\nname = "api"\nquota = "2/day"\nkey = ["user"]\ntiers = { gold = "4/day" }\n'
    file.write_text(f'[limits]\nstore = "{sql_url}"\n{rule}[limits.tiers]\ngold = ["user:ann"]\n')
    config = load_config(file, env={})
    assert config.tiers({"user": "ann"}) == "gold"
    with pytest.raises(ConfigError, match="keeps no tiers"):
        config.tiers["user:bob"] = "gold"
    shown = CliRunner().invoke(app, ["state", str(file), "user=ann", "--json"])
    assert shown.exit_code == 0, shown.output
    assert {row["tier"]: row["remaining"] for row in json.loads(shown.stdout)} == {"": 2, "gold": 4}
