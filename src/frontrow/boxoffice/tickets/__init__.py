"""Tickets: signing, reading back, QR, PDF and calendar entry, and the door's offline check."""
