"""The ports of holds: the ledger, the claim store, and who hears about sold and freed seats."""
