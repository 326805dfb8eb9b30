"""Messages: mails, push, SMS, webhooks and messages to buyers, each delivered at least once."""
