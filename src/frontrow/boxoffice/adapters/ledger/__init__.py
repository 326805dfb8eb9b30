"""The SQL ledger: one schema and one set of named statements for SQLite and PostgreSQL, written by group commit."""
