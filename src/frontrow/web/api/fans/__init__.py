"""The API for fans: events, holds, bookings, tickets, waitlist."""
