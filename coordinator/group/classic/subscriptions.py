"""Which topics a classic group's members are subscribed to, as far as the coordinator can know."""

import logging
from collections.abc import Iterable
from typing import Final

from kavka.protocol.codec import decode
from kavka.protocol.errors import DecodeError
from kavka.protocol.internal.consumer_protocol import MAX_ELEMENTS, ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
_VERSION_SIZE_BYTES: Final = 2

log = logging.getLogger(__name__)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics in all members' ConsumerProtocolSubscriptions; None if one of them is something else.

    Only what v0 has is read: all versions begin with it, those to come too.
    """
    topics: set[str] = set()
    for each in metadata:
        try:
            if len(each) < _VERSION_SIZE_BYTES:
                raise DecodeError("no version")
            subscription = decode(
                ConsumerProtocolSubscription,
                0,
                each,
                _VERSION_SIZE_BYTES,
                max_elements=MAX_ELEMENTS,
                trailing=True,
            )
        except DecodeError as error:
            log.debug("a member's subscription cannot be read: %s", error)
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
