"""The gate of the venue: which tickets it admits, with and without a network."""
