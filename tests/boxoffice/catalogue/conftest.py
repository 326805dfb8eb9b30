"""Ledgers for tests of the catalogue: the same fixtures the ledger's own tests use."""

from tests.boxoffice.conftest import (  # noqa: F401
    ledger,
    ledger_url,
    postgres_ledger_url,
    postgres_template,
    sqlite_ledger_url,
    sqlite_template,
)
