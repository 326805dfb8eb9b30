"""The checks at the entrance: rate limits, the human check and used proofs of work."""
