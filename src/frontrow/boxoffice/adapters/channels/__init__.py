"""Channels that reach people: email, web push, SMS, in-app messages."""
