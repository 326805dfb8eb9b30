"""The ports of holds: the ledger, the claim store, and the listener for sold and freed seats."""
