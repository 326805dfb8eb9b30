"""What payments store: payments and refunds with their bookings, in one transaction."""
