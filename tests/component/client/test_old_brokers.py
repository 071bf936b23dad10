"""Brokers of 2.1, the oldest that clients of today talk to (KIP-896), of 2.8 and of 3.3, with the versions they had."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kavka.client import Admin, Consumer, Producer
from kavka.client.admin import (
    AlterConfigOp,
    ConfigResource,
    ElectionType,
    GroupType,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicPartition,
    TopicPartitionReplica,
)
from kavka.client.api_errors import AbortableError, KafkaError, RecordTooLargeError, UnsupportedVersionError
from kavka.client.consumer.group.port import SubscriptionPattern
from kavka.protocol.api import ApiKey
from tests.support.old_kafka import NEWEST, old_kafka
from tests.support.processes import wait_until

TIMEOUT_S = 120.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = [("a", b"1"), ("a", None)]


class Old:
    """A broker, and what its release had."""

    def __init__(self, release: str, bootstrap: str) -> None:
        self.release = release
        self.newest = NEWEST[release]
        self.bootstrap = bootstrap


@pytest.fixture(scope="module", params=sorted(NEWEST))
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Old]:
    with old_kafka(request.param, tmp_path_factory.mktemp("old")) as running:
        running.errors.expect("cannot go on")
        yield Old(request.param, f"127.0.0.1:{running.port}")


@pytest.fixture
def topic(old: Old, request: pytest.FixtureRequest) -> str:
    name = f"{request.node.originalname.replace('_', '-')[:60]}"
    with Admin(bootstrap_servers=old.bootstrap) as admin:
        assert name in admin.create_topics([NewTopic(name, 2, 1)])
    return name


def consumed(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []

    def read() -> bool:
        records.extend(consumer.poll(200))
        return len(records) >= count

    wait_until(read, TIMEOUT_S, lambda: f"{len(records)} of {count}")
    return records


def test_records_of_every_codec_go_round_by_a_group(old: Old, topic: str) -> None:
    sent = set()
    for codec in CODECS:
        with Producer(bootstrap_servers=old.bootstrap, compression_type=codec) as producer:
            for number in range(20):
                key, value = f"{codec}{number}".encode(), None if number == 7 else codec.encode() * 50
                future = producer.send(topic, value, key=key, headers=HEADERS)
                sent.add((key, value))
            assert future.result(TIMEOUT_S).offset >= 0
    group: dict[str, Any] = {"bootstrap_servers": old.bootstrap, "group_id": topic, "auto_offset_reset": "earliest"}
    for strategy in ("range", "cooperative-sticky"):
        with Consumer(**group, partition_assignment_strategy=strategy, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic])
            records = consumed(consumer, len(sent))
            assert {(record.key, record.value) for record in records} == sent
            assert all(list(record.headers) == HEADERS for record in records)
            places = consumer.assignment()
            assert sum(consumer.end_offsets(places).values()) == len(sent)
            assert set(consumer.beginning_offsets(places).values()) == {0}
            assert all(found is not None for found in consumer.offsets_for_times(dict.fromkeys(places, 0)).values())
            if strategy != "range":
                consumer.commit_sync()
    with Producer(bootstrap_servers=old.bootstrap) as producer, Consumer(**group) as consumer:
        consumer.subscribe([topic])
        producer.send(topic, b"later").result(TIMEOUT_S)
        assert [record.value for record in consumed(consumer, 1)] == [b"later"]


def test_transactions_count_whole_and_go_on_after_one_that_could_not_be(old: Old, topic: str) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": old.bootstrap, "transactional_id": topic}
    place = TopicPartition(topic, 0)
    with Producer(**settings, max_request_size=10_000) as producer:
        producer.init_transactions()
        for number in range(3):
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            if number == 1:
                with pytest.raises(RecordTooLargeError):
                    producer.send(topic, bytes(20_000), partition=0).result(TIMEOUT_S)
                with pytest.raises(AbortableError):
                    producer.commit_transaction()
                producer.abort_transaction()
            else:
                producer.send_offsets_to_transaction({place: number + 1}, topic)
                producer.commit_transaction()
    reading: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=old.bootstrap, group_id=topic, **reading) as consumer:
        consumer.assign([place])
        assert consumer.position(place) == 3
        consumer.seek_to_beginning([place])
        assert [record.value for record in consumed(consumer, 2)] == [b"0", b"2"]


def test_a_members_offsets_need_a_coordinator_that_knows_members(old: Old, topic: str) -> None:
    """Before 2.5 TxnOffsetCommit named no member: who was put out of the group could not be told from who was not."""
    with (
        Producer(bootstrap_servers=old.bootstrap, transactional_id=topic) as producer,
        Consumer(bootstrap_servers=old.bootstrap, group_id=topic, auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([topic])
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x").result(TIMEOUT_S)
        consumed(consumer, 0)
        wait_until(lambda: consumer.poll(100) is not None and consumer.assignment(), TIMEOUT_S, "no partitions")

        def send() -> None:
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, consumer.group_metadata())

        if old.newest[ApiKey.TXN_OFFSET_COMMIT] >= 3:
            send()
            producer.commit_transaction()
        else:
            with pytest.raises(UnsupportedVersionError, match="TxnOffsetCommit in versions 3"):
                send()


def test_what_came_later_is_said_to_be_missing(old: Old, topic: str) -> None:
    settings: dict[str, Any] = {"bootstrap_servers": old.bootstrap, "group_id": topic}
    with Consumer(**settings, group_protocol="consumer") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(UnsupportedVersionError):
            consumed(consumer, 1)
    with Consumer(**settings, group_protocol="consumer") as consumer:
        consumer.subscribe(SubscriptionPattern(topic))
        with pytest.raises(UnsupportedVersionError):
            consumed(consumer, 1)


def the_broker(admin: Admin) -> int:
    """The only one's id."""
    (node,) = admin.describe_cluster().nodes
    return node.id


Use = Callable[[Admin, str], Any]
USES: dict[ApiKey, Use] = {
    ApiKey.API_VERSIONS: lambda admin, topic: admin.describe_api_versions(),
    ApiKey.METADATA: lambda admin, topic: (admin.describe_cluster(), admin.describe_topics([topic])),
    ApiKey.CREATE_PARTITIONS: lambda admin, topic: admin.create_partitions({topic: NewPartitions(3)}),
    ApiKey.DESCRIBE_CONFIGS: lambda admin, topic: admin.describe_configs([ConfigResource.topic(topic)]),
    ApiKey.ALTER_CONFIGS: lambda admin, topic: admin.alter_configs({ConfigResource.topic(topic): {}}),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda admin, topic: admin.incremental_alter_configs(
        {ConfigResource.topic(topic): [AlterConfigOp("retention.ms", "60000")]}
    ),
    ApiKey.LIST_OFFSETS: lambda admin, topic: admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.LATEST}),
    ApiKey.DELETE_RECORDS: lambda admin, topic: admin.delete_records({TopicPartition(topic, 0): 0}),
    ApiKey.ELECT_LEADERS: lambda admin, topic: admin.elect_leaders(ElectionType.PREFERRED),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda admin, topic: admin.list_partition_reassignments(),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda admin, topic: admin.alter_partition_reassignments(
        {TopicPartition(topic, 0): [the_broker(admin)]}
    ),
    ApiKey.DESCRIBE_LOG_DIRS: lambda admin, topic: (
        admin.describe_log_dirs(),
        admin.describe_replica_log_dirs([TopicPartitionReplica(topic, 0, the_broker(admin))]),
    ),
    ApiKey.OFFSET_COMMIT: lambda admin, topic: admin.alter_group_offsets(topic, {TopicPartition(topic, 0): 0}),
    ApiKey.OFFSET_FETCH: lambda admin, topic: admin.list_group_offsets({topic: None, "other": None}),
    ApiKey.LIST_GROUPS: lambda admin, topic: admin.list_groups(),
    ApiKey.DESCRIBE_GROUPS: lambda admin, topic: (
        admin.describe_consumer_groups([topic]),
        admin.describe_classic_groups([topic]),
    ),
    ApiKey.OFFSET_DELETE: lambda admin, topic: admin.delete_group_offsets(topic, [TopicPartition(topic, 0)]),
    ApiKey.DELETE_GROUPS: lambda admin, topic: (
        admin.alter_group_offsets("gone", {TopicPartition(topic, 0): 0}),
        admin.delete_groups(["gone"]),
    ),
    ApiKey.INIT_PRODUCER_ID: lambda admin, topic: admin.fence_producers([topic]),
    ApiKey.DESCRIBE_PRODUCERS: lambda admin, topic: admin.describe_producers([TopicPartition(topic, 0)]),
    ApiKey.LIST_TRANSACTIONS: lambda admin, topic: admin.list_transactions(),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda admin, topic: admin.describe_transactions([topic]),
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda admin, topic: admin.list_groups(types=[GroupType.CONSUMER]),
    ApiKey.DELETE_TOPICS: lambda admin, topic: admin.delete_topics([topic]),
}
"""In this order."""
MAY_BE_REFUSED = {"ElectLeaders", "AlterPartitionReassignments", "DescribeTransactions", "OffsetDelete"}
"""By the broker: there is nothing to elect, nor such a transaction, and nothing moves where it stands alone."""


def test_an_administrator_does_what_the_broker_can_and_says_what_it_cannot(old: Old, topic: str) -> None:
    refusals: dict[ApiKey, KafkaError] = {}
    with Admin(bootstrap_servers=old.bootstrap) as admin:
        for key, use in USES.items():
            try:
                use(admin, topic)
            except KafkaError as error:
                refusals[key] = error
    missing = {key for key, error in refusals.items() if isinstance(error, UnsupportedVersionError)}
    assert {key.title for key in missing} == {key.title for key in USES if key not in old.newest}
    others = {key.title: error for key, error in refusals.items() if key not in missing}
    assert others.keys() <= MAY_BE_REFUSED, others
