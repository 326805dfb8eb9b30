"""Scans as pure values and rules."""
