"""Ledgers for tests: each test gets a store of its own, copied from one that was migrated once a test process."""

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from tests.contracts.ledger_contract import Bench

KINDS = tuple(os.environ.get("FRONTROW_LEDGERS", "sqlite postgres").split())  # `partitioned` in `make soak`


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ledger") / "template.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_ledger_url(sqlite_template: Path, tmp_path: Path) -> str:
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture(params=KINDS)
def ledger_url(request: pytest.FixtureRequest) -> str:
    """A migrated, empty ledger, once on SQLite and once on PostgreSQL."""
    return str(request.getfixturevalue(f"{request.param}_ledger_url"))


@contextlib.asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[SqlLedger]:
    ledger = await open_ledger(url, auto_migrate=False, **options)
    try:
        yield ledger
    finally:
        await ledger.aclose()


@pytest.fixture
async def bench(ledger_url: str) -> AsyncIterator[Bench]:
    async with opened(ledger_url) as one, opened(ledger_url) as two:
        yield Bench(one, two)


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[SqlLedger]:
    async with opened(ledger_url) as one:
        yield one
