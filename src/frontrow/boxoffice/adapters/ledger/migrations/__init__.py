"""Alembic's migrations of the ledger. Plain SQL; `ddl` names the few words that differ between the dialects."""
