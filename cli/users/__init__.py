"""Passwords that brokers know users by (SCRAM, KIP-554)."""
