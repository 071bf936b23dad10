"""ListOffsets: which offset, for whom, checked against which epoch."""

from typing import Any

import pytest

from kavka.broker.handlers import list_offsets as _  # noqa: F401 - registers the handler
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.storage.log_answers import FoundOffset
from tests.support.broker_handlers import BROKER_ID, Broker, Denying

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
NO_LEADER = -1


def request(timestamp: int, *, topic: str = "visits", epoch: int = -1, **more: int) -> ListOffsetsRequest:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    fields: dict[str, Any] = {"replica_id": -1, "isolation_level": 0, **more}
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[part])], **fields)


def ask(broker: Broker, asked: ListOffsetsRequest, version: int = 7, **more: Any) -> tuple[int, int, int, int]:
    (topic,) = broker.ask(asked, version, **more).topics
    (part,) = topic.partitions
    return part.error_code, part.timestamp, part.offset, part.leader_epoch


@pytest.fixture
def broker() -> Broker:
    made = Broker(visits=[BROKER_ID])
    made.host("visits")
    return made


@pytest.mark.parametrize("version", range(1, 12))
def test_the_start_and_the_end_are_found_in_every_version(broker: Broker, version: int) -> None:
    end_epoch, start_epoch = (3, 2) if version >= 4 else (-1, -1)

    assert ask(broker, request(LATEST), version) == (ErrorCode.NONE, -1, 90, end_epoch)
    assert ask(broker, request(EARLIEST), version) == (ErrorCode.NONE, -1, 5, start_epoch)


def ask_for_several(broker: Broker, timestamp: int, count: int, *, replica_id: int = -1) -> tuple[int, list[int]]:
    asked = request(timestamp, replica_id=replica_id)
    asked.topics[0].partitions[0].max_num_offsets = count
    (topic,) = broker.ask(asked, 0).topics
    (part,) = topic.partitions
    return part.error_code, part.old_style_offsets


def test_the_oldest_version_lists_where_segments_begin(broker: Broker) -> None:
    broker.replicas.partitions["visits", 0].log.segments = {5: 1000, 20: 2000, 95: 3000}

    assert ask_for_several(broker, LATEST, 1) == (ErrorCode.NONE, [90])
    assert ask_for_several(broker, LATEST, 9) == (ErrorCode.NONE, [90, 20, 5])
    assert ask_for_several(broker, LATEST, 9, replica_id=-2) == (ErrorCode.NONE, [100, 95, 20, 5])
    assert ask_for_several(broker, EARLIEST, 9) == (ErrorCode.NONE, [5])
    assert ask_for_several(broker, 2000, 1) == (ErrorCode.NONE, [20])
    assert ask_for_several(broker, 2000, 2) == (ErrorCode.NONE, [20, 5])
    assert ask_for_several(broker, 999, 2) == (ErrorCode.NONE, [])
    for count in (0, -1):
        assert ask_for_several(broker, LATEST, count) == (ErrorCode.NONE, [])
    assert ask_for_several(broker, MAX_TIMESTAMP, 1) == (ErrorCode.UNSUPPORTED_VERSION, [])


@pytest.mark.parametrize(
    ("times", "answer"),
    [(2, (ErrorCode.NONE, [90])), (3, (ErrorCode.INVALID_REQUEST, []))],
    ids=["its start and its end", "a small request for a large answer"],
)
def test_the_oldest_version_answers_a_partition_twice(
    broker: Broker, times: int, answer: tuple[ErrorCode, list[int]]
) -> None:
    asked = request(LATEST)
    asked.topics[0].partitions *= times
    (topic,) = broker.ask(asked, 0).topics
    assert [(part.error_code, part.old_style_offsets) for part in topic.partitions] == [answer] * times


def test_the_end_is_what_the_client_may_read(broker: Broker) -> None:
    assert ask(broker, request(LATEST, isolation_level=1))[2] == 80
    assert ask(broker, request(LATEST, isolation_level=0))[2] == 90
    assert ask(broker, request(LATEST, replica_id=2))[2] == 100


def test_a_timestamp_finds_the_first_record_at_or_after_it(broker: Broker) -> None:
    broker.replicas.partitions["visits", 0].log.by_time = FoundOffset(1000, 50, 1)

    assert ask(broker, request(900)) == (ErrorCode.NONE, 1000, 50, 1)
    assert ask(broker, request(1001)) == (ErrorCode.NONE, -1, -1, -1)


def test_a_record_beyond_what_the_client_may_read_is_not_found(broker: Broker) -> None:
    broker.replicas.partitions["visits", 0].log.by_time = FoundOffset(1000, 85, 1)

    assert ask(broker, request(900, isolation_level=0))[2] == 85
    assert ask(broker, request(900, isolation_level=1))[2] == -1


def test_the_largest_timestamp_is_found_from_version_7_on(broker: Broker) -> None:
    broker.replicas.partitions["visits", 0].log.largest = FoundOffset(5000, 60, 2)

    assert ask(broker, request(MAX_TIMESTAMP), 7) == (ErrorCode.NONE, 5000, 60, 2)
    assert ask(broker, request(MAX_TIMESTAMP), 6)[0] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("timestamp", "since", "offset"), [(-4, 8, 5), (-5, 9, -1), (-6, 11, -1)], ids=["local start", "tiered", "pending"]
)
def test_offsets_of_tiered_storage_are_answered_without_it(
    broker: Broker, timestamp: int, since: int, offset: int
) -> None:
    assert ask(broker, request(timestamp), since)[::2] == (ErrorCode.NONE, offset)
    assert ask(broker, request(timestamp), since - 1)[0] == ErrorCode.UNSUPPORTED_VERSION


def test_an_unknown_negative_timestamp_is_refused(broker: Broker) -> None:
    assert ask(broker, request(-7), 11)[0] == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(3, ErrorCode.NONE), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_the_clients_leader_epoch_is_compared(broker: Broker, epoch: int, error: ErrorCode) -> None:
    assert ask(broker, request(LATEST, epoch=epoch))[0] == error


def test_partitions_that_are_not_led_here_say_where_to_look() -> None:
    broker = Broker(elsewhere=[2], followed=[2])
    broker.host("followed", is_leader=False)

    assert ask(broker, request(LATEST, topic="nowhere"), 0)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(broker, request(LATEST, topic="followed"), 0)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(broker, request(LATEST, topic="nowhere"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(broker, request(LATEST, topic="elsewhere"))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(broker, request(LATEST, topic="followed"))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ask(broker, request(LATEST, topic="followed", replica_id=-2))[:3] == (ErrorCode.NONE, -1, 100)


@pytest.mark.parametrize("replica_id", [-1, -2])
def test_of_a_partition_in_a_failed_directory_the_disk_is_told_before_the_epoch(replica_id: int) -> None:
    broker = Broker(lost=[NO_LEADER])
    for name in ("lost", "deleted"):
        broker.host(name)
        broker.replicas.partitions[name, 0].log = None  # type: ignore[assignment]  # as a directory's failure leaves it

    lost = ask(broker, request(LATEST, topic="lost", epoch=4, replica_id=replica_id))
    assert lost[0] == ErrorCode.KAFKA_STORAGE_ERROR
    deleted = ask(broker, request(LATEST, topic="deleted", replica_id=replica_id))
    assert deleted[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_an_invalid_request(broker: Broker) -> None:
    twice = request(LATEST)
    twice.topics[0].partitions *= 2

    (topic,) = broker.ask(twice, 7).topics

    assert [part.error_code for part in topic.partitions] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_topic_that_may_not_be_described_is_refused(broker: Broker) -> None:
    forbids = Denying((Operation.DESCRIBE, "visits"))

    assert ask(broker, request(LATEST), authorizer=forbids)[0] == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_whose_high_watermark_lags_does_not_know_the_end(
    broker: Broker, version: int, error: ErrorCode
) -> None:
    partition = broker.replicas.partitions["visits", 0]
    partition.role = partition.role._replace(epoch_start_offset=91)
    partition.log.by_time = FoundOffset(1000, 50, 1)

    assert ask(broker, request(LATEST), version)[0] == error
    assert ask(broker, request(LATEST, isolation_level=1), version)[0] == error
    assert ask(broker, request(1001), version)[0] == error
    assert ask(broker, request(900), version)[:3] == (ErrorCode.NONE, 1000, 50)
    assert ask(broker, request(EARLIEST), version)[:3] == (ErrorCode.NONE, -1, 5)
    assert ask(broker, request(LATEST, replica_id=2), version)[:3] == (ErrorCode.NONE, -1, 100)

    partition.log.high_watermark = 91
    assert ask(broker, request(LATEST), version)[:3] == (ErrorCode.NONE, -1, 91)
