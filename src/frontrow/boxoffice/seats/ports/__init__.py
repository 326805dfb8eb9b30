"""The ports of seats: venues and their plans in the ledger, and what the live map needs."""
