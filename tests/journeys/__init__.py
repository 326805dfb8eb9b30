"""Journeys: what a person does from beginning to end, each as one readable test through a real browser.

Every journey runs twice: *embedded* (one process, SQLite, mails in a folder) and *clustered* (Redis, PostgreSQL,
a real SMTP server, localstripe where the journey pays by Stripe). `stack` is the running shop, `visitor` makes people.
"""
