"""The durable trail of a waiting room, in SQLite or PostgreSQL."""
