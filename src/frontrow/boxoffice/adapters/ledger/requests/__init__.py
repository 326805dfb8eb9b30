"""The answers of requests under an idempotency key."""
