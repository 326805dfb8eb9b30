"""Ledgers on both stores, as the ledger's own tests have them."""

from tests.boxoffice.conftest import (
    bench,
    ledger_url,
    postgres_ledger_url,
    postgres_template,
    sqlite_ledger_url,
    sqlite_template,
)

__all__ = [
    "bench",
    "ledger_url",
    "postgres_ledger_url",
    "postgres_template",
    "sqlite_ledger_url",
    "sqlite_template",
]
