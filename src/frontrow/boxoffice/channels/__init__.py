"""Ways to reach people: e-mail, web push, SMS, the in-app page. Each takes batches of rendered messages."""
