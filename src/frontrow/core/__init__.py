"""What all three systems build on: time, ids, errors, settings, the coalescer. Imports none of them."""
