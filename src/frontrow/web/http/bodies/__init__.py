"""The JSON shapes of the API that several packages share: bookings, holds, invoices, brands, prices."""
