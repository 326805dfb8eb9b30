"""The waitlist as pure values and rules."""
