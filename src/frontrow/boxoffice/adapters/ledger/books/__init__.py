"""The ledger's books: one per port, each a set of reads and programs."""
