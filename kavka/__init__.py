"""Kavka: a Kafka-protocol-compatible broker in Python. Every room of the repository is imported from here."""

__version__ = "0.1.0"
