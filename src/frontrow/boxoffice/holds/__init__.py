"""Holds: place, extend, release and expire them. Includes the events on sale and this server's cache of their seats."""
