"""Facts become messages: outbox relay, consumers, notifications, deliveries, organisers' webhooks."""
