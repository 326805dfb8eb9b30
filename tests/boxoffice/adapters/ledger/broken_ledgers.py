"""Ledgers with one guard taken out of a statement: each contract suite must catch them."""

from collections.abc import Mapping

import pytest

from frontrow.boxoffice.adapters.ledger.engine.statements import Dialect, render
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres
from frontrow.core.errors import FrontrowError
from tests.boxoffice.conftest import opened
from tests.contracts.ledger_contract import Bench, Check


def statement_of(url: str, name: str) -> str:
    """A statement as the ledger at this address runs it."""
    return render(Dialect.POSTGRES if is_postgres(url) else Dialect.SQLITE)[name]


def broken(url: str, name: str, change: tuple[str, str]) -> Mapping[str, str]:
    """The statement with one part replaced."""
    sql = statement_of(url, name)
    assert change[0] in sql, f"{change[0]!r} is no longer part of {name}"
    return {name: sql.replace(*change)}


async def must_catch(url: str, sql: Mapping[str, str], check: Check) -> None:
    """Run a check of a contract against a ledger with these statements; it must fail."""
    async with opened(url, sql=sql) as one, opened(url, sql=sql) as two:
        with pytest.raises((AssertionError, FrontrowError)):
            await check(Bench(one, two))
