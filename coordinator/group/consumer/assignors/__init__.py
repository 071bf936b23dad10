"""Server-side assignors (KIP-848): pure functions from members and topics to assignments."""
