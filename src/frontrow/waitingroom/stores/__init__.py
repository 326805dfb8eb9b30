"""Where a room's few integers are stored: memory or Redis, each also with one place per person (roster)."""
