"""Seats, plans and venues as pure values and rules."""
