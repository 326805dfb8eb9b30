"""The organiser's work: bookings, box-office sales, reseating, figures, reports, exports, brand."""
