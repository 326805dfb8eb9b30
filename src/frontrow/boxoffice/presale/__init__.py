"""Before a sale: people ask to be notified or register for a presale; organisers draw and send codes."""
