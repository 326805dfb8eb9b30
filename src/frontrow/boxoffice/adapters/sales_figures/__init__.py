"""The history of live sales figures in Redis."""
