"""The catalogue of events: listing, status, and following its changes."""
