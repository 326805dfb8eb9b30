"""A ledger for tests of organisers."""

from collections.abc import AsyncIterator

import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from tests.boxoffice.conftest import opened


@pytest.fixture
async def sqlite_ledger(sqlite_ledger_url: str) -> AsyncIterator[SqlLedger]:
    """One ledger is enough where no statement is in question."""
    async with opened(sqlite_ledger_url) as one:
        yield one
