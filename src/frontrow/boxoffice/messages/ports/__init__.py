"""The ports of messages: channels that reach people, and what the ledger keeps of messages."""
