"""Limits for requests that this program sends: each waits for its turn, and a server's 429 is obeyed."""
