"""The pages for door staff."""
