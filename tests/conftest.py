"""Fixtures every test may use: private real servers, one of each kind per test process.

`FRONTROW_TEST_REDIS_URL` and `FRONTROW_TEST_POSTGRES_URL` point the same tests at other servers. A server that cannot
be had fails the run with one sentence; nothing is skipped. What a machine cannot check is said at the end of the run.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser

from frontrow.testing.clock import ManualClock
from tests.support.chromium import SharedBrowser
from tests.support.closed_databases import watch_databases
from tests.support.databases import database
from tests.support.memory_files import keep_files_in_memory
from tests.support.servers import (
    Cluster,
    Postgres,
    Sentinel,
    Server,
    ServerUnavailable,
    Valkey,
    system_postgres,
    system_redis,
)

pytest_plugins = ["tests.support.worker_groups", "tests.support.not_checked"]

# Compiled modules are kept whatever the shell says: many tests start processes that import the whole platform.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
keep_files_in_memory()
watch_databases()

settings.register_profile("suite", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_configure(config: pytest.Config) -> None:
    """Python 3.12.0 to 3.12.3 take SQLite's numbered parameters (`?1`) for named ones and warn (gh-117995)."""
    if (3, 12) <= sys.version_info < (3, 12, 4):
        numbered = r"ignore:Binding \d+ \('\?\d+'\) is a named parameter:DeprecationWarning"
        config.addinivalue_line("filterwarnings", numbered)


def pytest_collection_finish() -> None:
    """The modules and tests that are read by now stay: no garbage collection need look at them again."""
    gc.freeze()


def started(server: Server) -> Iterator[Server]:
    try:
        server.start()
    except ServerUnavailable as error:
        pytest.exit(f"The tests need a real server: {error}", returncode=2)
    yield server
    server.close()


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    """The shared Redis-protocol server of this test process. Do not kill, pause or flush this one: start your own."""
    yield from started(Valkey())  # type: ignore[misc]


@pytest.fixture(scope="session")
def shared_redis_url(request: pytest.FixtureRequest) -> str:
    return os.environ.get("FRONTROW_TEST_REDIS_URL") or request.getfixturevalue("valkey").url


@pytest.fixture
def redis_url(shared_redis_url: str) -> str:
    """URL of the shared server, emptied for this test."""
    import redis

    with redis.Redis.from_url(shared_redis_url) as client:
        client.flushdb()
    return shared_redis_url


@pytest.fixture(scope="session", params=["wheel", *system_redis()])
def every_redis_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The wheel's server and then each Redis-protocol server installed on this machine."""
    if request.param == "wheel":
        yield request.getfixturevalue("shared_redis_url")
        return
    with Valkey(program=request.param) as server:
        yield server.url


@pytest.fixture(scope="session", params=["wheel", *map(str, system_postgres())])
def every_postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The wheel's server and then each PostgreSQL installed on this machine."""
    if request.param == "wheel":
        yield request.getfixturevalue("shared_postgres_url")
        return
    with Postgres(bin_dir=request.param) as server:
        yield server.url


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A server of this test's own, to be killed, paused or wiped."""
    with Valkey() as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def redis_sentinel(own_valkey: Valkey) -> Iterator[Sentinel]:
    with Sentinel(own_valkey) as sentinel:
        yield sentinel


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The shared PostgreSQL server of this test process. It does not wait for the disk: the machine outlives it."""
    options = ("fsync=off", "full_page_writes=off", "max_wal_size=128MB")
    yield from started(Postgres(*(part for option in options for part in ("-c", option))))  # type: ignore[misc]


@pytest.fixture(scope="session")
def shared_postgres_url(request: pytest.FixtureRequest) -> str:
    return os.environ.get("FRONTROW_TEST_POSTGRES_URL") or request.getfixturevalue("postgres").url


@pytest.fixture
def postgres_url(shared_postgres_url: str) -> Iterator[str]:
    """URL of an empty database of this test's own."""
    with database(shared_postgres_url) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(shared_postgres_url: str) -> Iterator[str]:
    """The name of a database with the newest schema, to make copies of."""
    from frontrow.boxoffice.adapters.ledger.migrate import migrate

    with database(shared_postgres_url) as url:
        with ThreadPoolExecutor(1) as thread:  # a loop may run in this one: Playwright's
            thread.submit(migrate, url).result(60)
        yield url.rpartition("/")[2]


@pytest.fixture
def postgres_ledger_url(shared_postgres_url: str, migrated_postgres: str) -> Iterator[str]:
    """URL of a database of this test's own, with the newest schema and nothing in it."""
    with database(shared_postgres_url, migrated_postgres) as url:
        yield url


@pytest.fixture(scope="session")
def partitioned_postgres(shared_postgres_url: str, migrated_postgres: str) -> Iterator[str]:
    """The name of a database whose tables of the sale are partitioned by event, to make copies of."""
    from frontrow.boxoffice.adapters.ledger.partitions import partition_ledger

    with database(shared_postgres_url, migrated_postgres) as url:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, partition_ledger(url, 4, lambda line: None)).result(60)
        yield url.rpartition("/")[2]


@pytest.fixture
def partitioned_ledger_url(shared_postgres_url: str, partitioned_postgres: str) -> Iterator[str]:
    """URL of a database of this test's own, partitioned by event and empty."""
    with database(shared_postgres_url, partitioned_postgres) as url:
        yield url


@pytest.fixture(scope="session")
def shared_browser() -> Iterator[SharedBrowser]:
    shared = SharedBrowser()
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def browser(shared_browser: SharedBrowser) -> Iterator[Browser]:
    """The one Chromium of this test process. Each test makes a fresh context (a browser profile) in it."""
    with shared_browser.lent() as lent:
        yield lent


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()
