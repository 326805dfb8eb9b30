"""Who has which seat right now: the SeatClaims port in memory (one process) and in Redis (any number)."""
