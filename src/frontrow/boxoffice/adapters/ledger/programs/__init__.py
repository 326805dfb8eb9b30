"""Transaction programs: what the ledger does in one transaction, written once for both databases."""
