"""How large the waiting room's page may be: what a new connection carries at once."""

MAX_PAGE_BYTES = 14 * 1024
