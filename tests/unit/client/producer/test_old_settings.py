"""The settings of the 0.8 producer mean what they meant there."""

from types import MappingProxyType
from typing import Any

import pytest

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.producer.old_partitioner import OldPartitioner, default_partition, hash_code, old_partitioner
from kavka.client.producer.old_settings import OldWays, translate
from kavka.config.clients import producer_settings
from kavka.config.errors import ConfigError

SERVER = {"metadata.broker.list": "localhost:9092"}


def cluster(leaders: list[int], version: int = 1) -> Cluster:
    partitions = MappingProxyType({number: PartitionInfo(leader, 0) for number, leader in enumerate(leaders)})
    return Cluster(topics={"birds": TopicInfo("birds", bytes(16), 0, False, partitions)}, version=version)


def both(given: dict[str, Any]) -> tuple[Any, OldWays]:
    made, ways = translate({**SERVER, **given})
    assert ways is not None
    return producer_settings(made), ways


def test_without_its_names_nothing_changes() -> None:
    given = {"bootstrap.servers": "localhost:9092", "partitioner.class": "random"}
    assert translate(given) == (given, None)


def test_the_defaults_are_those_of_then() -> None:
    settings, ways = both({})
    assert settings.bootstrap_servers == ("localhost:9092",)
    assert (settings.acks, settings.retries, settings.request_timeout_ms) == (0, 3, 10_000)
    assert (settings.enable_idempotence, settings.max_in_flight_requests_per_connection) == (False, 1)
    assert (settings.metadata_max_age_ms, settings.linger_ms) == (600_000, 0)
    assert ways == OldWays(True, 10_000, -1, 200, False, None)


def test_async_lingers_and_counts_records() -> None:
    given = {
        "producer.type": "async",
        "queue.buffering.max.ms": "700",
        "queue.buffering.max.messages": 50,
        "queue.enqueue.timeout.ms": "0",
        "batch.num.messages": 7,
        "message.send.max.retries": 5,
        "request.required.acks": -1,
    }
    settings, ways = both(given)
    assert (settings.linger_ms, settings.retries, settings.acks) == (700, 5, -1)
    assert ways == OldWays(False, 50, 0, 7, False, None)


@pytest.mark.parametrize(
    ("interval", "age_ms", "always"), [(-1, 2**63 - 1, False), (0, 2**63 - 1, True), (9, 9, False)]
)
def test_metadata_are_refreshed_as_then(interval: int, age_ms: int, always: bool) -> None:
    settings, ways = both({"topic.metadata.refresh.interval.ms": interval})
    assert (settings.metadata_max_age_ms, ways.refreshes_always) == (age_ms, always)


def test_codecs_and_serializers_are_named_as_then() -> None:
    given = {
        "compression.codec": "2",
        "compressed.topics": "a, b",
        "serializer.class": "kafka.serializer.StringEncoder",
    }
    settings, ways = both(given)
    assert (settings.compression_type, ways.compressed_topics) == ("snappy", frozenset("ab"))
    assert settings.key_serializer == settings.value_serializer == "kafka.serializer.StringEncoder"
    settings, _ = both({**given, "key.serializer.class": "kafka.serializer.DefaultEncoder"})
    assert settings.key_serializer == "kafka.serializer.DefaultEncoder"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("producer.type", "both"),
        ("request.required.acks", "2"),
        ("compression.codec", "zip"),
        ("batch.num.messages", 0),
        ("queue.enqueue.timeout.ms", -2),
        ("message.send.max.retries", "many"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        translate({**SERVER, name: value})


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", 0),
        ("hello", 99_162_322),
        ("polygenelubricants", -(2**31)),
        (7, 7),
        (2**40, 256),
        (b"\xff\1", 931),
        (True, 1231),
    ],
)
def test_hash_codes_are_javas(key: Any, code: int) -> None:
    assert hash_code(key) == code


def test_the_partition_key_counts_before_the_key() -> None:
    chooser = old_partitioner(None, {})
    here = cluster([0] * 5)
    assert chooser.partition("birds", "kavka", b"kavka", None, None, here, None) == default_partition("kavka", 5)
    assert chooser.partition("birds", "kavka", b"kavka", None, None, here, 3) == 3
    assert default_partition("polygenelubricants", 7) == 0


def test_without_a_key_one_partition_is_kept_until_metadata_are_new() -> None:
    chooser = OldPartitioner(default_partition)
    here = cluster([-1, 0, 0])
    kept = {chooser.partition("birds", None, None, None, None, here, None) for _ in range(50)}
    assert len(kept) == 1
    assert kept <= {1, 2}
    seen = {chooser.partition("birds", None, None, None, None, cluster([-1, 0, 0], 2 + n), None) for n in range(100)}
    assert seen == {1, 2}


def test_a_partitioner_of_then_sees_key_and_count() -> None:
    class ByLastNumber:
        def partition(self, key: str, count: int) -> int:
            return int(key.rpartition(".")[2]) % count

    chooser = old_partitioner(ByLastNumber, {})
    assert chooser.partition("birds", "192.168.14.9", b"", None, None, cluster([0] * 4), None) == 1
