"""Where a room's few integers live: memory, Redis, and both again with one place per person (roster)."""
