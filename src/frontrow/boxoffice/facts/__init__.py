"""Facts: what happened, from the outbox over the bus to their consumers."""
