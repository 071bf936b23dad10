"""Which names a topic may have, and which topics are the brokers' own."""

from __future__ import annotations

import re
from typing import Final

from kavka.protocol.errors import BrokerError, ErrorCode

MAX_NAME_LENGTH: Final = 249
"""A partition's folder is `name-partition`, or with `.uuid-delete` behind; file names end at 255."""

GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def validate_topic_name(name: str) -> None:
    """Raise BrokerError(INVALID_TOPIC_EXCEPTION) unless Kafka would take `name`."""
    if not name:
        reason = "it is empty"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"its {len(name)} characters are more than the {MAX_NAME_LENGTH} allowed"
    elif not _LEGAL.fullmatch(name):
        reason = "only ASCII letters and digits, '.', '_' and '-' are allowed"
    else:
        return
    # Never the whole of it: a client may send 32 KiB.
    raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name {name[:300]!r} is invalid: {reason}.")


def is_topic_name(name: str) -> bool:
    """Whether Kafka would take it."""
    return 0 < len(name) <= MAX_NAME_LENGTH and name not in (".", "..") and _LEGAL.fullmatch(name) is not None


def collision_key(name: str) -> str:
    """Equal for names that are the same metric: there '.' becomes '_'."""
    return name.replace(".", "_")
