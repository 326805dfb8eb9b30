"""The pages for organisers."""
