"""From a hold to a sold booking: payments, their provider calls, reconciliation, receipts."""
