"""Pages about one event: its steps, its options, its codes, presale and waitlist."""
