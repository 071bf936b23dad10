"""How large a dead letter may be: it is longer than the record was, which may have been as long as a record can be."""

from collections.abc import Mapping
from typing import Final

from kavka.client import Admin, ConfigResource
from kavka.client.api_errors import ClusterAuthorizationError, TopicAuthorizationError
from kavka.pipeline.secret_references import resolved_settings
from kavka.pipeline.sending.marked_producer import MOST_REQUEST_BYTES

_BY_DEFAULT: Final = 1_048_588
"""What a broker takes where nobody said otherwise."""
_NAME: Final = "max.message.bytes"
_OF_PRODUCERS: Final = ("max.request.size", "buffer.memory")
_ROOM: Final = 1_000
"""For a batch's head and a record's numbers."""


def most_letter_bytes(admin: Admin, topic: str, settings: Mapping[str, str]) -> int:
    """Of key, value and headers together, in this topic, by a producer of these settings. Raises KafkaError."""
    resource = ConfigResource.topic(topic)
    try:
        found = admin.describe_configs([resource], names=[_NAME])[resource][_NAME].value
    except (TopicAuthorizationError, ClusterAuthorizationError):
        # Who may write need not be let see settings.
        found = None
    own = resolved_settings({name: settings[name] for name in _OF_PRODUCERS if name in settings})
    limits = [int(each) for each in (found or _BY_DEFAULT, *own.values(), MOST_REQUEST_BYTES)]
    return max(min(limits) - _ROOM, 0)
