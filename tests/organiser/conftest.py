"""Ledgers for tests of organisers: the same fixtures the ledger's own tests use."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.ledger.sql_ledger import SqlLedger
from tests.boxoffice.ledger.conftest import (  # noqa: F401
    ledger,
    ledger_url,
    opened,
    postgres_ledger_url,
    postgres_template,
    sqlite_ledger_url,
    sqlite_template,
)
from tests.organiser.http import Desk, a_desk, a_venue_body


@pytest.fixture
async def sqlite_ledger(sqlite_ledger_url: str) -> AsyncIterator[SqlLedger]:  # noqa: F811
    """One ledger is enough where no statement is in question."""
    async with opened(sqlite_ledger_url) as one:
        yield one


@pytest.fixture
async def a_shared_desk(tmp_path: Path) -> AsyncIterator[tuple[Desk, str]]:
    """An owner's desk and a venue of theirs."""
    async with a_desk(tmp_path) as desk:
        venue = await desk.post("/v1/organiser/venues", 201, json=a_venue_body())
        yield desk, venue["venue"]
