"""What operators read of the ledger, and the work that is due."""
