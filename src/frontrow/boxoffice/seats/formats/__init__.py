"""Seating plans as documents: our format, pretix, CSV, and generated plans."""
