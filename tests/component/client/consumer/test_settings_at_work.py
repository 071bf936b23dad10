"""Settings of the consumer that brokers see, or that decide what it asks for."""

import re
import threading
from typing import Any

import pytest

from kavka.client import Consumer
from kavka.client.consumer.errors import WakeupError
from kavka.config.errors import ConfigError
from kavka.protocol.messages.fetch import FetchRequest
from kavka.protocol.messages.metadata import MetadataRequest
from tests.component.client.consumer.serving_consumers import BIRDS, QUICK, TOPIC, ConsumersBroker, batch_of
from tests.support.descriptors import descriptors
from tests.support.processes import wait_until

TIMEOUT_S = 120.0


@pytest.mark.parametrize(
    ("setting", "value", "field"),
    [
        ("fetch_min_bytes", 7, "min_bytes"),
        ("fetch_max_wait_ms", 33, "max_wait_ms"),
        ("fetch_max_bytes", 54_321, "max_bytes"),
        ("isolation_level", "read_committed", "isolation_level"),
        ("client_rack", "attic", "rack_id"),
    ],
)
def test_what_is_set_for_fetching_is_asked_for(setting: str, value: Any, field: str) -> None:
    serving = ConsumersBroker([batch_of(3)])
    settings = {**QUICK, setting: value}
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
        consumer.assign([BIRDS])
        wait_until(lambda: len(consumer.poll(50)), TIMEOUT_S, "nothing is read")
    expected = 1 if field == "isolation_level" else value
    assert {getattr(request, field) for request in serving.requests(FetchRequest)} == {expected}


def test_a_partitions_share_is_asked_for() -> None:
    serving = ConsumersBroker([batch_of(3)])
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, max_partition_fetch_bytes=4_321, **QUICK) as consumer,
    ):
        consumer.assign([BIRDS])
        wait_until(lambda: len(consumer.poll(50)), TIMEOUT_S, "nothing is read")
    rows = [row for each in serving.requests(FetchRequest) for topic in each.topics for row in topic.partitions]
    assert {row.partition_max_bytes for row in rows} == {4_321}


@pytest.mark.parametrize("allowed", [False, True])
def test_asking_for_a_topic_creates_it_only_if_allowed(allowed: bool) -> None:
    serving = ConsumersBroker([batch_of(3)])
    with (
        serving.serves() as broker,
        Consumer(bootstrap_servers=broker.bootstrap, allow_auto_create_topics=allowed, **QUICK) as consumer,
    ):
        assert not consumer.partitions_for("trees")
        consumer.assign([BIRDS])
        wait_until(lambda: len(consumer.poll(50)), TIMEOUT_S, "nothing is read")
    asked = [each for each in serving.requests(MetadataRequest) if each.topics]
    assert {each.allow_auto_topic_creation for each in asked} == {allowed}


@pytest.mark.parametrize("excluded", [False, True])
def test_a_pattern_finds_internal_topics_only_if_they_are_not_excluded(excluded: bool) -> None:
    serving = ConsumersBroker([batch_of(3)])
    serving.topics["__birds"] = bytes(15) + b"\x08"
    with (
        serving.serves() as broker,
        Consumer(
            bootstrap_servers=broker.bootstrap, group_id="g", exclude_internal_topics=excluded, **QUICK
        ) as consumer,
    ):
        consumer.subscribe(re.compile(".*birds"))
        wait_until(lambda: list(consumer.poll(5)) or consumer.subscription(), TIMEOUT_S, "nothing is found")
        assert consumer.subscription() == ({TOPIC} if excluded else {TOPIC, "__birds"})
        wait_until(lambda: consumer.poll(5) or consumer.assignment(), TIMEOUT_S, "nothing is assigned")
        assert {partition.topic for partition in consumer.assignment()} == consumer.subscription()


@pytest.mark.parametrize("in_group", [False, True])
def test_what_was_read_is_committed_by_the_interval_while_a_poll_waits_for_more(in_group: bool) -> None:
    serving = ConsumersBroker([batch_of(3)])
    settings = {**QUICK, "enable_auto_commit": True, "auto_commit_interval_ms": 1_000, "group_id": "g"}
    with serving.serves() as broker, Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
        if in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([BIRDS])
        wait_until(lambda: len(consumer.poll(50)), TIMEOUT_S, "nothing is read")

        def wait_for_more() -> None:
            with pytest.raises(WakeupError):
                consumer.poll(600_000)

        waiting = threading.Thread(target=wait_for_more)
        waiting.start()
        try:
            wait_until(lambda: serving.committed == 3, TIMEOUT_S, "what was read is not committed")
        finally:
            consumer.wakeup()
            waiting.join()


@pytest.mark.parametrize("setting", ["partition_assignment_strategy", "interceptor_classes", "value_deserializer"])
def test_a_class_that_is_none_leaves_no_descriptors_behind(setting: str) -> None:
    before = descriptors()
    with pytest.raises(ConfigError) as caught:
        Consumer(bootstrap_servers="127.0.0.1:1", group_id="g", **{setting: "no.such.Class"})
    wait_until(lambda: not descriptors() - before, TIMEOUT_S, lambda: f"left: {descriptors() - before}, by {caught}")
