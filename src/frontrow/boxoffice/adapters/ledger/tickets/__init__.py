"""What tickets store: tickets, scans, transfers, wallet keys."""
