"""Partitions that move to other brokers: what is to go where, how many bytes that is, and how far it is."""
