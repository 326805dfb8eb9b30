"""Payments: from the intent to the captured money, and the provider's answers."""
