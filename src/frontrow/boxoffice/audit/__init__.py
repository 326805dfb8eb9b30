"""Checks the ledger's hash-chained audit log."""
