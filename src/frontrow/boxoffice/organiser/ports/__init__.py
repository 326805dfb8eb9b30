"""The ports of organisers' pages: bookings, figures, report mails, brands."""
