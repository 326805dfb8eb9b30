"""Implementations of the ports: ledger, claims, payment providers, bus, message channels."""
