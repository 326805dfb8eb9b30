"""Receipts and invoices as pure values and rules."""
