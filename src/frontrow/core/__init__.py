"""Shared basics of all three systems: time, ids, errors, settings and the coalescer. Imports none of them."""
