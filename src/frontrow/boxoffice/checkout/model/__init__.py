"""Receipts, invoices and the priority after an outage as pure values and rules."""
