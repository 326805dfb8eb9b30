"""The waitlist: entries, and offers of freed seats."""
