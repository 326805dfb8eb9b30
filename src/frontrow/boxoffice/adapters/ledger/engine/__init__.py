"""Statements, the two databases, and the group commit that writes to them."""
