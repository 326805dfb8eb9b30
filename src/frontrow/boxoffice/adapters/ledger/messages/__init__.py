"""What messages store: deliveries, contacts, messages to buyers, dead letters."""
