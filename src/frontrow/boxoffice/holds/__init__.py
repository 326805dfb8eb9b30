"""Holding seats: place, extend, release, expire; the events on sale and what this server knows about their seats."""
