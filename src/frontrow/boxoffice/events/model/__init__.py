"""Events as pure values and rules."""
