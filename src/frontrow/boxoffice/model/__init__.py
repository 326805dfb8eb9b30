"""The pure core of the box office: values and decisions; no I/O, clock, randomness or async."""
