"""What all three systems stand on: time, ids, errors, settings and the coalescer. Knows none of them."""
