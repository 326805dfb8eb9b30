"""The checkpoint at the entry: rate limits, the human check and used proofs of work."""
