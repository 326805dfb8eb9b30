"""The ports of refunds: returned tickets, refunds that staff give, cancelled events."""
