"""What holds store: bookings, their seats and their moves, each in one transaction."""
