"""The durable record of a waiting room, in SQLite or PostgreSQL."""
