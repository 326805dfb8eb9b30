"""Money back: refunds, payouts, tickets returned for resale, cancelled events."""
