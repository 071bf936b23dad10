"""TLS and SASL for clients: what `client/security_port.py` asks for. Loaded by those that are to be secure alone."""
