"""Payments as pure values and rules."""
