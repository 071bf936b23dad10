"""TLS of listeners: their certificates, how these are renewed, and who a client's certificate makes it."""
