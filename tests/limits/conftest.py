"""The backends that the limiter's tests run over."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits.backends import BACKENDS, IN_MEMORY, Backend
from tests.limits.shared_stores import KINDS, url_of_kind
from tests.support.databases import database
from tests.support.server_programs import system_postgres, system_redis


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Ends as that of `asyncio.run` does: a connection that other limiters of this process share ends with it."""
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture(scope="session")
def limits_database(shared_postgres_url: str) -> Iterator[str]:
    """A database of the limiter's own, for all tests of this process."""
    with database(shared_postgres_url) as url:
        yield url


@pytest.fixture
def sql_url(request: pytest.FixtureRequest) -> str:
    """Of the kind that the test asks for by `indirect`."""
    return url_of_kind(request.param, request)


@pytest.fixture(params=KINDS)
def shared_url(request: pytest.FixtureRequest) -> str:
    """Every kind of shared store, empty."""
    return url_of_kind(request.param, request)


@pytest.fixture(
    scope="session",
    params=["redis", "postgresql", "sqlite", *system_redis(), *map(str, system_postgres())],
)
def every_shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Every kind of shared store, and each server that is installed on this machine. A test empties it first."""
    from tests.support.servers import Postgres, Valkey

    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('limits')}/limits.db"
    elif request.param == "redis":
        yield request.getfixturevalue("shared_redis_url")
    elif request.param == "postgresql":
        yield request.getfixturevalue("limits_database")
    elif "postgres" in request.param:
        with Postgres(bin_dir=Path(request.param)) as server:
            yield server.url
    else:
        with Valkey(program=request.param) as server:
            yield server.url


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[Backend]:
    kind = request.param.removesuffix("-async")
    opened = Backend(request.param, "memory://" if kind in IN_MEMORY else url_of_kind(kind, request), loop)
    yield opened
    opened.close()
