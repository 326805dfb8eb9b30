"""The live seat map: one numbered stream of changes per event."""
