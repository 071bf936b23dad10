"""How much clients may ask for: KIP-13, 55, 124, 219, 546, 599 and 612. Loaded when the first quota is set."""
