"""Seating plans as files: the plan document, pretix JSON, CSV, generated plans, pictures."""
