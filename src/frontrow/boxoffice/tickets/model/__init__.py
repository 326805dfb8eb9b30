"""Tickets, transfers and wallets as pure values and rules."""
