"""The words of mails, tickets and receipts in every language, and how values are formatted."""
