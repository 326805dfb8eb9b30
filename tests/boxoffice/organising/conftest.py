"""Ledgers for tests of organisers: the same fixtures the ledger's own tests use."""

from collections.abc import AsyncIterator

import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from tests.boxoffice.conftest import (  # noqa: F401
    ledger,
    ledger_url,
    opened,
    postgres_ledger_url,
    postgres_template,
    sqlite_ledger_url,
    sqlite_template,
)


@pytest.fixture
async def sqlite_ledger(sqlite_ledger_url: str) -> AsyncIterator[SqlLedger]:  # noqa: F811
    """One ledger is enough where no statement is in question."""
    async with opened(sqlite_ledger_url) as one:
        yield one
