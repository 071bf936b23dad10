"""Moving replicas from one log directory of this broker to another (KIP-113)."""
