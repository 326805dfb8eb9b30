"""Pages about the organisation itself: team, seller, brand, wallets, webhooks, audit."""
