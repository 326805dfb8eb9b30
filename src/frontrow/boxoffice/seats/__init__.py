"""Seats: venues, plans and their formats, best seats, the live map."""
