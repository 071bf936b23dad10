"""Every message in every version: encoded, decoded and encoded again, by both codecs."""

from collections.abc import Callable
from typing import Any

import pytest

from kavka.protocol import interpreter
from kavka.protocol.codec import decode, decoder, encode
from kavka.protocol.errors import EncodeError
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kavka.protocol.messages.fetch import FetchRequest, FetchTopic, ReplicaState
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kavka.protocol.messages.offset_fetch import OffsetFetchRequest
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kavka.protocol.schema import Message
from tests.support.message_values import STYLES, all_message_versions, message_value

NOTHING: Any = None
PAIRS = list(all_message_versions())
IDS = [f"{cls.__name__}-v{version}" for cls, version in PAIRS]
every_message = pytest.mark.parametrize(("cls", "version"), PAIRS, ids=IDS)


@every_message
def test_a_message_survives_the_wire_in_both_codecs(cls: type[Message], version: int) -> None:
    for style in STYLES:
        message = message_value(cls, version, style)

        wire = encode(message, version)

        assert wire == interpreter.encode(message, version), style
        assert decode(cls, version, wire) == message, style
        assert interpreter.decode(cls, version, wire) == message, style


@every_message
def test_every_version_has_bytes_of_its_own_default(cls: type[Message], version: int) -> None:
    assert decode(cls, version, encode(cls(), version)) == cls()


def test_a_body_behind_a_header_is_decoded_in_place() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    frame = b"header" + encode(request, 4)

    assert decoder(HeartbeatRequest, 4)(memoryview(frame), 6) == request
    assert decode(HeartbeatRequest, 4, bytearray(frame), 6) == request


def test_records_are_a_view_of_the_request() -> None:
    partition = PartitionProduceData(index=0, records=b"batch")
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    frame = bytearray(encode(request, 9))

    records = decode(ProduceRequest, 9, frame).topic_data[0].partition_data[0].records

    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert bytes(records) == b"batch"


@pytest.mark.parametrize("codec_encode", [encode, interpreter.encode])
@pytest.mark.parametrize(
    ("message", "version", "named"),
    [
        (
            FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], replica_state=ReplicaState(replica_id=1)),
            12,
            "replica_state",
        ),
        (FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], replica_id=5), 15, "replica_id"),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i"), 2, "group_instance_id"),
        (FindCoordinatorRequest(coordinator_keys=["a"]), 3, "coordinator_keys"),
        (MetadataRequest(topics=[], allow_auto_topic_creation=False), 3, "allow_auto_topic_creation"),
        (OffsetFetchRequest(require_stable=True), 6, "require_stable"),
    ],
)
def test_a_value_that_the_version_cannot_say_is_refused(
    codec_encode: Callable[..., bytes], message: Message, version: int, named: str
) -> None:
    with pytest.raises(EncodeError, match=named):
        codec_encode(message, version)


def test_an_ignorable_value_is_dropped_from_versions_that_lack_it() -> None:
    request = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[])], session_id=77)

    assert decode(FetchRequest, 6, encode(request, 6)).session_id == 0
    assert decode(FetchRequest, 7, encode(request, 7)).session_id == 77


@pytest.mark.parametrize("codec_encode", [encode, interpreter.encode])
@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(topics=None), 0),
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9),
        (HeartbeatRequest(group_id="g", generation_id=2**31, member_id="m"), 0),
        (HeartbeatRequest(group_id="g" * 32_768, generation_id=1, member_id="m"), 0),
        (HeartbeatRequest(group_id="g" * 32_768, generation_id=1, member_id="m"), 4),
        (HeartbeatRequest(group_id="\ud800", generation_id=1, member_id="m"), 4),
        (CreateTopicsResponse(topics=[CreatableTopicResult(name="t", topic_id=b"short", error_code=0)]), 7),
        (ProduceResponse(responses=NOTHING), 9),
    ],
)
def test_a_value_without_a_form_on_the_wire_is_refused(
    codec_encode: Callable[..., bytes], message: Message, version: int
) -> None:
    with pytest.raises(EncodeError):
        codec_encode(message, version)


@pytest.mark.parametrize("codec_encode", [encode, interpreter.encode])
def test_unknown_tagged_fields_need_a_flexible_version_and_free_tags(codec_encode: Callable[..., bytes]) -> None:
    request = ApiVersionsRequest()
    request.unknown_tagged_fields = ((7, b"x"),)
    with pytest.raises(EncodeError):
        codec_encode(request, 0)

    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], cluster_id="c")
    fetch.unknown_tagged_fields = ((0, b"x"),)
    with pytest.raises(EncodeError):
        codec_encode(fetch, 12)


@pytest.mark.parametrize("codec_encode", [encode, interpreter.encode])
def test_unknown_tagged_fields_are_written_in_order_among_known_ones(codec_encode: Callable[..., bytes]) -> None:
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[], replica_state=ReplicaState(replica_id=1))
    request.unknown_tagged_fields = ((9, b"nine"), (5, b"five"))

    wire = codec_encode(request, 15)

    replica_state = b"\x01\x0d" + (1).to_bytes(4, "big") + b"\xff" * 8 + b"\x00"
    assert wire.endswith(b"\x03" + replica_state + b"\x05\x04five" + b"\x09\x04nine")


def test_a_version_that_the_class_lacks_is_a_callers_mistake() -> None:
    with pytest.raises(ValueError, match="0 to 4"):
        encode(HeartbeatRequest(group_id="", generation_id=0, member_id=""), 5)
    with pytest.raises(ValueError, match="0 to 4"):
        decode(HeartbeatRequest, -1, b"")
