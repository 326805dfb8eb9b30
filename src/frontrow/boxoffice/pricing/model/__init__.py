"""Pricing as pure values and rules."""
