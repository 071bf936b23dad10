"""Sockets: listening, reading frames, writing answers in order."""
