"""Holding seats: place, extend, release, expire; the events on sale and this server's cache of their seats."""
