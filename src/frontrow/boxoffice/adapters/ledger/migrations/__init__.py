"""Alembic's migrations of the ledger. Plain SQL; `ddl` says what the dialects force to differ."""
