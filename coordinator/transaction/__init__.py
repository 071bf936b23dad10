"""Transactions: producer ids, epochs, and their two-phase end."""
