"""The seat map's frame log in Redis."""
