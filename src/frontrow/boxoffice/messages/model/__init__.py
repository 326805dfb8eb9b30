"""Messages as pure values and rules."""
