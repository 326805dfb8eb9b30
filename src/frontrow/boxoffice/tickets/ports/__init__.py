"""The ports of tickets: ticket book, transfers, wallet keys."""
