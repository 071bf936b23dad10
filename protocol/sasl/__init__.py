"""SASL's messages, both sides: bytes and proofs, no I/O. Brokers and clients use the same."""
