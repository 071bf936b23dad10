"""The id of the topic that a folder's log belongs to (`partition.metadata`, KIP-516).

    version: 0
    topic_id: U2X29nykQ7a34JX2D92-Pw      base64url without padding, 16 bytes

Written when the log is created; a log of a topic that was deleted and made anew under the same name is told by it.
"""

import base64
import binascii
from pathlib import Path
from typing import Final

from kavka.storage.files import Files

FILE_NAME: Final = "partition.metadata"
MAX_FILE_BYTES: Final = 4096
NO_TOPIC_ID: Final = bytes(16)


class CorruptPartitionMetadataError(Exception):
    """The file doesn't name a topic id."""


class InconsistentTopicIdError(Exception):
    """The log belongs to another topic of the same name."""


def encode(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}\n".encode()


def decode(data: bytes) -> bytes:
    """The 16 bytes of the topic id. Raises CorruptPartitionMetadataError."""
    fields = dict(_field(line) for line in data.decode("utf-8", "replace").splitlines() if line.strip())
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise CorruptPartitionMetadataError(f"expected version 0 and a topic id, found {sorted(fields)}")
    text = fields["topic_id"]
    try:
        topic_id = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        topic_id = b""
    if len(topic_id) != 16 or topic_id == NO_TOPIC_ID:
        raise CorruptPartitionMetadataError(f"{text!r} is no topic id")
    return topic_id


def read_topic_id(folder: Path, files: Files) -> bytes:
    """The id of the topic that the folder belongs to; NO_TOPIC_ID where it isn't there to be read. Raises OSError."""
    try:
        return decode(files.read_bytes(folder / FILE_NAME, MAX_FILE_BYTES))
    except (FileNotFoundError, CorruptPartitionMetadataError):
        # Corrupt: the power went before the first flush. The topic's own id is right then, as in `PartitionLog.open`.
        return NO_TOPIC_ID


def topic_id_text(topic_id: bytes) -> str:
    """An id as Kafka writes it: base64url, 22 characters."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
