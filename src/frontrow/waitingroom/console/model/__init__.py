"""Pure values and decisions of the console."""
