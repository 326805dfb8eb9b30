"""What presales store: sign-ups and their draw."""
