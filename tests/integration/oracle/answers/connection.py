"""What a broker does with bytes that are no good request, and in which order it answers those that are."""

import struct
from collections.abc import Sequence

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kavka.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.integration.oracle.answers.stage import KAFKA_43, Stage, batch, produce_request, scenario
from tests.support.processes import wait_until
from tests.support.wire import ClosedError

NEWEST = "3-3"


def send(stage: Stage, label: str, frame: bytes, size: int | None = None) -> None:
    """Send a frame and note whether an answer came, and its first bytes."""
    try:
        stage.client.send_frame(frame, size)
        stage.note(label, stage.client.receive_frame()[:6].hex())
    except ClosedError:
        stage.note(label, "closed")
    stage.client.close()


@scenario(ApiKey.API_VERSIONS, NEWEST)
def bad_frames_close_the_connection(stage: Stage) -> None:
    header = struct.pack(">hhih", 18, 0, 9, -1)
    send(stage, "good", header)
    send(stage, "unknown key", struct.pack(">hhih", 999, 0, 9, -1))
    send(stage, "negative key", struct.pack(">hhih", -3, 0, 9, -1))
    send(stage, "unknown version of Metadata", struct.pack(">hhih", 3, 99, 9, -1))
    send(stage, "negative version", struct.pack(">hhih", 3, -1, 9, -1))
    send(stage, "unknown version of ApiVersions", struct.pack(">hhih", 18, 99, 9, -1))
    send(stage, "negative version of ApiVersions", struct.pack(">hhih", 18, -1, 9, -1))
    send(stage, "an API of the controller", struct.pack(">hhih", 52, 0, 9, -1))
    send(stage, "cut short", header[:6])
    send(stage, "no frame", b"")
    send(stage, "one byte", b"\0")
    send(stage, "negative size", header, -5)
    send(stage, "size too large", header, 2**31 - 1)
    send(stage, "client id too long", struct.pack(">hhih", 18, 0, 9, 500))
    send(stage, "client id length -2", struct.pack(">hhih", 18, 0, 9, -2))
    send(stage, "text", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    send(stage, "bytes behind the body", header + b"extra")
    send(stage, "Metadata cut short", struct.pack(">hhihi", 3, 1, 9, -1, 5))
    send(stage, "Metadata claims many topics", struct.pack(">hhihi", 3, 1, 9, -1, 2**31 - 1))
    send(stage, "Metadata claims -2 topics", struct.pack(">hhihi", 3, 1, 9, -1, -2))


@scenario(ApiKey.API_VERSIONS, NEWEST)
def pipelined_requests_are_answered_in_order(stage: Stage) -> None:
    topic = stage.topic()
    client = stage.client
    part = FetchPartition(partition=0, fetch_offset=5, partition_max_bytes=1000)
    asked = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    requests = [
        (produce_request(topic, batch(2)), 8),
        (ListOffsetsRequest(replica_id=-1, topics=[asked]), 5),
        (produce_request(topic, batch(3)), 8),
        (
            FetchRequest(
                max_wait_ms=300, min_bytes=1, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[part])]
            ),
            11,
        ),
        (produce_request(topic, batch(1)), 8),
        (ListOffsetsRequest(replica_id=-1, topics=[asked]), 5),
        (ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3),
    ]
    keys = [(client.send(request, version), version) for request, version in requests]
    for number, (key, version) in enumerate(keys[:-1]):
        stage.note(f"answer {number}", stage.plain(client.receive(key, version)))
    client.receive(*keys[-1])


@scenario(ApiKey.FIND_COORDINATOR)
def coordinators_are_found(stage: Stage) -> None:
    batched = stage.version >= 4

    def ask(label: str, *keys: str, key_type: int = 0) -> None:
        request = (
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
            if batched
            else FindCoordinatorRequest(key=keys[0], key_type=key_type)
        )
        # Kafka has clients come again while the topic is being created, Kavka lets them wait.
        wait_until(lambda: is_available(stage.client.ask(request, stage.version)), 60, "no coordinator")
        stage.ask(label, request)

    ask("group", "g")
    ask("nameless", "")
    if batched:
        ask("groups", "g", "h")
        ask("none")
        ask("twice", "g", "g")
    if stage.version >= 1:
        ask("transaction", "t", key_type=1)
        ask("type 9", "g", key_type=9)


def is_available(answer: FindCoordinatorResponse) -> bool:
    answers: Sequence[FindCoordinatorResponse | Coordinator] = answer.coordinators or [answer]
    return all(each.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE for each in answers)


@scenario(ApiKey.API_VERSIONS, "3-99", oracles=(KAFKA_43,))
def features_are_told(stage: Stage) -> None:
    answer = stage.client.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), stage.version)
    for name in ("group.version", "transaction.version"):
        told = [each for each in (*answer.supported_features, *answer.finalized_features) if each.name == name]
        stage.note(name, stage.plain(told))
    stage.note("has an epoch", answer.finalized_features_epoch >= 0)
