"""Bookings, holds and claims as pure values and rules."""
