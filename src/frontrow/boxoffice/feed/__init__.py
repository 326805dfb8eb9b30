"""The seat-map feed: one numbered stream of state changes for all viewers of an event, the same on every server."""
