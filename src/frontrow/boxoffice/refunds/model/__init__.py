"""Refunds and returned tickets as pure values and rules."""
