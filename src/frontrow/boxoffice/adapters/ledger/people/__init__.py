"""What people store: organisers, staff, fans, sessions, links, API keys."""
