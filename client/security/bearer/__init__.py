"""Tokens for OAUTHBEARER: read, made, fetched, and replaced before their ends."""
