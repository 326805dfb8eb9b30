"""People, their roles and their names as pure values and rules."""
