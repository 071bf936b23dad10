"""Topic ids (KIP-516): random UUIDs as 16 bytes, shown as 22 characters of base64."""

import os
from typing import Final

ZERO_ID: Final = bytes(16)
"""Means: no id."""

RESERVED_IDS: Final = frozenset({ZERO_ID, bytes(15) + b"\x01"})
"""None, and the KRaft metadata log's."""


def new_topic_id() -> bytes:
    """A version 4 UUID that no tool mistakes for an option: its text never begins with '-'."""
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        topic_id = bytes(raw)
        # The first six bits make the first character; 62 is '-'.
        if topic_id[0] >> 2 != 62 and topic_id not in RESERVED_IDS:
            return topic_id
