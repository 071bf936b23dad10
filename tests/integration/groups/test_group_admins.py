"""The admin clients of confluent-kafka, kafka-python and aiokafka: groups and their offsets, seen and changed."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition

from tests.integration.groups.conftest import NewGroup
from tests.support.group_members import FAST_GROUPS, Group, feed
from tests.support.server import RunningServer

BROKER_SETTINGS = FAST_GROUPS
RANGE = {"partition.assignment.strategy": "range"}
WAIT_S = 120.0


@pytest.fixture
def confluent(broker: RunningServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 3})


@pytest.fixture
def kafka_python(broker: RunningServer) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        yield admin


def test_confluents_admin_sees_both_kinds_of_groups(new_group: NewGroup, confluent: AdminClient) -> None:
    classic, new = _filled(new_group("classic"), RANGE), _filled(new_group("new"), {"group.protocol": "consumer"})
    listed = {one.group_id: one for one in confluent.list_consumer_groups().result(WAIT_S).valid}
    only_new = confluent.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(WAIT_S).valid
    only_empty = confluent.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(WAIT_S).valid
    ids = [classic.group_id, new.group_id]
    described = {name: one.result(WAIT_S) for name, one in confluent.describe_consumer_groups(ids).items()}

    assert (listed[classic.group_id].type, listed[new.group_id].type) == (
        ConsumerGroupType.CLASSIC,
        ConsumerGroupType.CONSUMER,
    )
    assert {one.group_id for one in only_new} & set(ids) == {new.group_id}
    assert {one.group_id for one in only_empty} & set(ids) == set()
    for group in (classic, new):
        one = described[group.group_id]
        assert one.state == ConsumerGroupState.STABLE
        (member,) = one.members
        assert member.client_id == "admins"
        assert sorted(each.partition for each in member.assignment.topic_partitions) == [0, 1]
    assert described[classic.group_id].partition_assignor == "range"
    assert described[new.group_id].partition_assignor == "uniform"


@pytest.mark.parametrize("kind", ["classic", "new"])
def test_confluents_admin_reads_and_changes_offsets_and_deletes_groups(
    new_group: NewGroup, confluent: AdminClient, kind: str
) -> None:
    group = _filled(new_group(kind), RANGE if kind == "classic" else {"group.protocol": "consumer"})
    asked = ConsumerGroupTopicPartitions(group.group_id)
    read = confluent.list_consumer_group_offsets([asked])[group.group_id].result(WAIT_S)
    wanted = ConsumerGroupTopicPartitions(group.group_id, [ConfluentPartition(group.topic, 0, 4)])
    refused = confluent.alter_consumer_group_offsets([wanted])[group.group_id].result(WAIT_S)
    with pytest.raises(KafkaException, match=r"NON_EMPTY_GROUP|not empty"):
        confluent.delete_consumer_groups([group.group_id])[group.group_id].result(WAIT_S)
    group.members[0].close()
    confluent.alter_consumer_group_offsets([wanted])[group.group_id].result(WAIT_S)
    altered = confluent.list_consumer_group_offsets([asked])[group.group_id].result(WAIT_S)
    confluent.delete_consumer_groups([group.group_id])[group.group_id].result(WAIT_S)
    left = {one.group_id for one in confluent.list_consumer_groups().result(WAIT_S).valid}

    assert [one.error is None for one in refused.topic_partitions] == [False]
    assert sorted((one.partition, one.offset) for one in read.topic_partitions) == [(0, 10), (1, 10)]
    assert sorted((one.partition, one.offset) for one in altered.topic_partitions) == [(0, 4), (1, 10)]
    assert group.group_id not in left


def test_kafka_pythons_admin_sees_changes_and_deletes(group: Group, kafka_python: KafkaAdminClient) -> None:
    _filled(group, RANGE)
    zero, one = TopicPartition(group.topic, 0), TopicPartition(group.topic, 1)
    listed = {found["group_id"]: found for found in kafka_python.list_groups()}
    described = kafka_python.describe_groups([group.group_id])[group.group_id]
    read = kafka_python.list_group_offsets(group.group_id)[group.group_id]
    group.members[0].close()
    kafka_python.alter_group_offsets(group.group_id, {zero: OffsetAndMetadata(3, "by hand", -1)})
    kafka_python.delete_group_offsets(group.group_id, [one])
    altered = kafka_python.list_group_offsets(group.group_id)[group.group_id]
    kafka_python.delete_groups([group.group_id])
    left = {found["group_id"] for found in kafka_python.list_groups()}

    assert listed[group.group_id]["protocol_type"] == "consumer"
    assert len(described["members"]) == 1
    assert {partition: found.offset for partition, found in read.items()} == {zero: 10, one: 10}
    assert {partition: (found.offset, found.metadata) for partition, found in altered.items()} == {zero: (3, "by hand")}
    assert group.group_id not in left


def test_aiokafkas_admin_sees_groups_and_offsets(broker: RunningServer, group: Group) -> None:
    _filled(group, RANGE)

    async def look(admin: AIOKafkaAdminClient) -> tuple[Any, Any, Any]:
        listed = await admin.list_consumer_groups()
        described = await admin.describe_consumer_groups([group.group_id])
        return listed, described, await admin.list_consumer_group_offsets(group.group_id)

    listed, described, offsets = _with_aiokafka(broker, look)

    assert (group.group_id, "consumer") in [tuple(row[:2]) for row in listed]
    (found,) = described[0].groups
    assert found[1:4] == (group.group_id, "Stable", "consumer")
    assert {(name.partition, one.offset) for name, one in offsets.items()} == {(0, 10), (1, 10)}


def _filled(group: Group, settings: dict[str, str]) -> Group:
    """With a member that has read and committed ten records of each of two partitions."""
    group.create_topic(2)
    ends = feed(group.broker, group.topic, 2, 10)
    group.join("confluent", {**settings, "client.id": "admins"})
    group.wait_until_done(ends)
    return group


def _with_aiokafka(broker: RunningServer, look: Callable[[AIOKafkaAdminClient], Coroutine[Any, Any, Any]]) -> Any:
    async def act() -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            return await look(admin)
        finally:
            await admin.close()

    return asyncio.run(asyncio.wait_for(act(), WAIT_S))
