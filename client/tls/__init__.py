"""TLS for clients and brokers alike: key stores and trust stores, cipher names, contexts of OpenSSL."""
