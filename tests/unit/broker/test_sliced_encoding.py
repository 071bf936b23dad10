"""An answer encoded in slices is, byte for byte, the answer encoded at once."""

import pytest

from kavka.broker.requests.sliced_encoding import CHUNK_ITEMS, encode_in_slices
from kavka.protocol.codec import encode
from kavka.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic


def topic(number: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=number % 3, name=f"t{number}" * (number % 5 + 1), partitions=[])


def response() -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=1, host="a", port=2)]
    return MetadataResponse(brokers=brokers, topics=[], cluster_id="c", controller_id=1)


SHORT = [
    (version, count) for version in range(14) for count in (0, 1, 2, CHUNK_ITEMS, CHUNK_ITEMS + 1, 126, 127, 128, 300)
]
LONG = [(1, 16_500), (8, 16_500), (9, 16_500), (13, 16_500)]


@pytest.mark.parametrize(("version", "count"), SHORT + LONG)
def test_slices_make_the_same_bytes(version: int, count: int) -> None:
    whole = response()
    whole.topics = [topic(number) for number in range(count)]

    sliced = encode_in_slices(response(), "topics", range(count), topic, version, flexible=version >= 9)

    assert sliced == encode(whole, version)
