"""A topic that is deleted under a consumer: nothing is raised or read, and what is made anew is read anew."""

import logging
from typing import Any

import pytest

from kavka.client import Consumer
from kavka.client.consumer.errors import WakeupError
from kavka.client.consumer.group.port import RebalanceListener
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.component.client.consumer.serving_consumers import BIRDS, QUICK, TOPIC, TOPIC_ID, ConsumersBroker, batch_of
from tests.support.processes import wait_until

TIMEOUT_S = 120.0
ANEW = bytes(15) + b"\x08"


class Told(RebalanceListener):
    """What the listener hears, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, set[Any]]] = []

    def on_assigned(self, partitions: Any) -> None:
        self.events.append(("assigned", set(partitions)))

    def on_revoked(self, partitions: Any) -> None:
        self.events.append(("revoked", set(partitions)))

    def on_lost(self, partitions: Any) -> None:
        self.events.append(("lost", set(partitions)))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def read(consumer: Consumer) -> list[int]:
    return [record.offset for record in consumer.poll(20)]


def test_what_was_assigned_by_hand_stays_and_is_asked_for_on(caplog: pytest.LogCaptureFixture) -> None:
    serving = ConsumersBroker([batch_of(3)])
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, allow_auto_create_topics=False, **QUICK) as consumer,
    ):
        consumer.assign([BIRDS])
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]
        del serving.topics[TOPIC]
        before = len(serving.requests(MetadataRequest))

        def is_asked_on() -> bool:
            assert read(consumer) == []
            return len(serving.requests(MetadataRequest)) >= before + 20

        wait_until(is_asked_on, TIMEOUT_S, "the metadata are not asked for")
        fetches = len(serving.requests(FetchRequest))
        assert read(consumer) == []
        assert len(serving.requests(FetchRequest)) == fetches
        assert consumer.position(BIRDS) == 3
        assert consumer.assignment() == {BIRDS}
        # Once, not with each answer.
        assert len([each for each in warnings(caplog) if f"topic='{TOPIC}'" in each]) == 1
        serving.topics[TOPIC] = ANEW
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]


@pytest.mark.parametrize("is_assigned", [False, True])
def test_a_topic_whose_ends_were_looked_up_is_asked_for_on_only_where_it_is_read(is_assigned: bool) -> None:
    serving = ConsumersBroker([batch_of(3)])
    settings = {**QUICK, "metadata_max_age_ms": 10}
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
        if is_assigned:
            consumer.assign([BIRDS])
        assert consumer.end_offsets([BIRDS]) == {BIRDS: 3}
        del serving.topics[TOPIC]
        before = len(serving.requests(MetadataRequest)) + 1
        wait_until(
            lambda: len(serving.requests(MetadataRequest)) >= before + 5, TIMEOUT_S, "the metadata are not asked for"
        )
        named = [bool(request.topics) for request in serving.requests(MetadataRequest)[before:]]
        assert named == [is_assigned] * len(named)


def test_a_lookup_that_a_wakeup_ended_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    serving = ConsumersBroker([batch_of(3)])
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **QUICK) as consumer:
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.end_offsets([TopicPartition("trees", 0)], timeout_ms=3_600_000)
        assert consumer.end_offsets([BIRDS]) == {BIRDS: 3}
        wait_until(lambda: not consumer._core.lookups._lookups, TIMEOUT_S, "it is still looked up")
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_groups_member_gives_it_up_and_gets_it_again_once_it_is_made_anew(protocol: str) -> None:
    serving, told = ConsumersBroker([batch_of(3)]), Told()
    settings: dict[str, Any] = {**QUICK, "metadata_max_age_ms": 50, "group_protocol": protocol}
    if protocol == "consumer":
        del settings["heartbeat_interval_ms"]
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **settings) as consumer:
        consumer.subscribe([TOPIC], told)
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]
        assert told.events == [("assigned", {BIRDS})]
        assert serving.topics.pop(TOPIC) == TOPIC_ID
        wait_until(lambda: read(consumer) or not consumer.assignment(), TIMEOUT_S, "it is still assigned")
        assert told.events[1:2] == [("revoked", {BIRDS})]
        assert consumer.subscription() == {TOPIC}
        serving.topics[TOPIC] = ANEW
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]
        assert told.events[-1] == ("assigned", {BIRDS})


def test_a_group_reads_what_is_made_anew_at_once_though_its_metadata_came_before_its_partitions() -> None:
    serving, told = ConsumersBroker([batch_of(3)]), Told()
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, group_id="g", **QUICK) as consumer:
        consumer.subscribe([TOPIC], told)
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]
        serving.topics[TOPIC] = ANEW
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "the former goes on") == [0, 1, 2]


@pytest.mark.parametrize("is_looked_up", [False, True])
def test_who_seeks_in_what_was_made_anew_before_it_is_heard_of_reads_on_there(is_looked_up: bool) -> None:
    serving = ConsumersBroker([batch_of(3)])
    settings = {**QUICK, "auto_offset_reset": "latest"}
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
        consumer.assign([BIRDS])
        consumer.seek(BIRDS, 0)
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "nothing is read") == [0, 1, 2]
        serving.topics[TOPIC] = ANEW
        if is_looked_up:
            consumer.seek_to_beginning([BIRDS])
        else:
            consumer.seek(BIRDS, 0)
        assert wait_until(lambda: read(consumer), TIMEOUT_S, "the seek is lost") == [0, 1, 2]
