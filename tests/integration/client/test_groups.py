"""Our members in groups, while records flow."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from kavka.client.api_errors import UnsupportedVersionError
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.group.errors import CommitFailedError
from kavka.client.consumer.group.port import OffsetAndMetadata, RebalanceListener, SubscriptionPattern
from kavka.client.topic_partition import TopicPartition
from tests.support.client_brokers import KAFKA_39, KAFKA_43, KAVKA, NEWER
from tests.support.client_groups import EVERY_WAY, NEW, RANGE, row
from tests.support.group_members import MORTAL, Feeder, Group
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic

PARTITIONS = 6
BOTH_PROTOCOLS = [row(KAVKA, RANGE), row(KAVKA, NEW), row(KAFKA_39, RANGE), row(KAFKA_43, NEW)]


@pytest.mark.parametrize(("broker", "way"), EVERY_WAY, indirect=["broker"])
def test_members_join_leave_and_are_killed_and_nothing_is_skipped(
    broker: RunningServer, group: Group, way: dict[str, str]
) -> None:
    group.create_topic(PARTITIONS)
    mortal = way if way is NEW else {**way, **MORTAL}
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        first, second = group.join("kavka", mortal), group.join("kavka", way)
        group.wait_until_shared([first, second], PARTITIONS)
        third = group.join("kavka", way)
        group.wait_until_shared([first, second, third], PARTITIONS)
        second.close()
        group.wait_until_shared([first, third], PARTITIONS)
        first.kill()
        group.wait_until_shared([third], PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    third.close()
    group.assert_sound(ends)


@pytest.mark.parametrize("broker", NEWER, indirect=True)
def test_a_group_is_rolled_to_the_new_protocol_and_back(broker: RunningServer, group: Group) -> None:
    group.create_topic(PARTITIONS)
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        members = [group.join("kavka", RANGE), group.join("confluent", RANGE)]
        group.wait_until_shared(members, PARTITIONS)
        for way in (NEW, RANGE):
            for index, library in enumerate(["kavka", "confluent"]):
                members[index].close()
                members[index] = group.join(library, way)
                group.wait_until_shared(members, PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    group.assert_sound(ends)


@pytest.mark.parametrize(("broker", "way"), BOTH_PROTOCOLS, indirect=["broker"])
def test_a_static_member_that_restarts_gets_its_own_back(
    broker: RunningServer, group: Group, way: dict[str, str]
) -> None:
    group.create_topic(PARTITIONS)
    members = [group.join("kavka", {**way, "group.instance.id": name}) for name in ("a", "b")]
    group.wait_until_shared(members, PARTITIONS)
    mine, told = set(members[0].owned), len(members[1].of("assigned", "revoked"))
    members[0].close()
    members[0] = group.join("kavka", {**way, "group.instance.id": "a"})
    group.wait_until_shared(members, PARTITIONS)
    assert members[0].owned == mine
    assert len(members[1].of("assigned", "revoked")) == told


def test_a_commit_by_hand_beside_a_live_group_is_refused(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=1)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic}
    place = {TopicPartition(topic, 0): OffsetAndMetadata(5, None, "five")}
    with Consumer(settings) as member, Consumer(settings) as alone:
        member.subscribe([topic])
        wait_until(lambda: member.poll(100) or member.assignment(), 60, "not assigned")
        alone.assign([TopicPartition(topic, 0)])
        with pytest.raises(CommitFailedError):
            alone.commit_sync(place)
        member.commit_sync(place)
        assert alone.committed(list(place)) == place
        member.unsubscribe()
        alone.commit_sync({TopicPartition(topic, 0): OffsetAndMetadata(6)})
        assert member.committed(list(place)) == {TopicPartition(topic, 0): OffsetAndMetadata(6)}


def test_the_broker_matches_a_pattern_or_says_that_it_cannot(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=1)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, **NEW}
    with Consumer(settings) as consumer:
        consumer.subscribe(SubscriptionPattern(topic.replace(".", "[.]")))
        if broker.name == "kafka-3.9":
            with pytest.raises(UnsupportedVersionError):
                wait_until(lambda: consumer.poll(100), 60, "no error")
            return
        wait_until(lambda: consumer.poll(100) or consumer.assignment(), 60, "not assigned")
        assert consumer.assignment() == {TopicPartition(topic, 0)}


@pytest.mark.parametrize(("broker", "way"), BOTH_PROTOCOLS, indirect=["broker"])
def test_a_listener_that_is_told_of_partitions_may_ask_where_they_are_read(
    broker: RunningServer, topic: str, way: dict[str, str]
) -> None:
    create_topic(broker, topic, partitions=1)
    found: list[int] = []

    class Asks(RebalanceListener):
        def on_assigned(self, partitions: Collection[TopicPartition]) -> None:
            found.extend(consumer.position(partition, timeout_ms=20_000) for partition in partitions)

    with Consumer({**way, "bootstrap.servers": broker.bootstrap, "group.id": topic}) as consumer:
        consumer.subscribe([topic], Asks())
        wait_until(lambda: consumer.poll(100) or found, 60, "not assigned")
    assert found == [0]
