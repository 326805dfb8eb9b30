"""Pages of the box office: bookings and what is done with them, sales by staff, messages to buyers."""
