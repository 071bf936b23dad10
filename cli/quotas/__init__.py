"""Limits of what users, clients and addresses may ask of brokers (KIP-13, KIP-124, KIP-546, KIP-599, KIP-612)."""
