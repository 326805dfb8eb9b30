"""The waiting room as a server of its own, and its page."""
