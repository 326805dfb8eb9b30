"""The organiser's work as pure values and rules."""
