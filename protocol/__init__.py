"""Bytes to values and back: messages, headers, records. No I/O, no threads, no clock."""
