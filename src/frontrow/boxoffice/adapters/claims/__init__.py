"""The claim store, which knows who has which seat: in memory (one process) and in Redis (any number of processes)."""
