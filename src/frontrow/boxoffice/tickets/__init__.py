"""Tickets: signed codes, QR, PDF and calendar entry, and the offline check at the gate."""
