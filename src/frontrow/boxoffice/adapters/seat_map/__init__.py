"""The frames of the live seat map in Redis."""
