"""Payments: from the intent to the captured money, and what the provider says about it."""
