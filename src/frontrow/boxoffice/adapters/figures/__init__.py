"""The history of live figures in Redis."""
