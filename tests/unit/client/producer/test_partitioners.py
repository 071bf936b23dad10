"""Which partition a key has, and what becomes of records without one."""

import zlib
from types import MappingProxyType

import pytest

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.producer.assembly import partitioner_of
from kavka.client.producer.murmur2 import murmur2
from kavka.client.producer.partitioners import (
    MURMUR2,
    PARTITIONERS,
    KeyHash,
    RandomPartitioner,
    RoundRobinPartitioner,
    murmur2_hash,
)
from kavka.client.producer.topic_queues import MEMO_KEYS, TopicQueues
from kavka.config.errors import ConfigError


def info(leaders: list[int]) -> TopicInfo:
    partitions = {number: PartitionInfo(leader, 0) for number, leader in enumerate(leaders)}
    return TopicInfo("birds", bytes(16), 0, False, MappingProxyType(partitions))


def queues(leaders: list[int], hashing: KeyHash = MURMUR2, *, is_adaptive: bool = True) -> TopicQueues:
    topic = TopicQueues("birds", hashing, is_adaptive=is_adaptive)
    topic.learn(info(leaders))
    return topic


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


def test_long_keys_hash_by_the_same_rule() -> None:
    key = bytes(range(256)) * 3
    assert 0 <= murmur2(key) < 2**32
    assert murmur2(key) != murmur2(key[:-1])


def test_a_key_has_its_partition_known_or_not() -> None:
    topic = queues([1, 1, 1])
    for _ in range(2):
        assert topic.of_key(b"foobar").topic_partition.partition == murmur2_hash(b"foobar") % 3
    assert topic.by_key == {b"foobar": topic.of_key(b"foobar")}


def test_more_partitions_are_hashed_over_anew() -> None:
    topic = queues([1])
    topic.of_key(b"foobar")
    topic.learn(info([1, 1, 1, 1, 1]))
    assert topic.of_key(b"foobar").topic_partition.partition == murmur2_hash(b"foobar") % 5


def test_known_keys_are_bounded() -> None:
    topic = queues([1, 1])
    for number in range(MEMO_KEYS + 10):
        topic.of_key(b"%d" % number)
    topic.of_key(b"x" * 1000)
    assert len(topic.by_key) == 10


def test_without_a_key_one_partition_is_stuck_to() -> None:
    topic = queues([1, 1, 1])
    first = topic.without_key()
    assert {topic.without_key() for _ in range(20)} == {first}
    assert topic.stick() is not first


def test_partitions_without_leader_are_not_stuck_to() -> None:
    topic = queues([-1, 2, -1])
    assert {topic.stick().topic_partition.partition for _ in range(20)} == {1}
    topic.learn(info([2, -1, -1]))
    assert topic.without_key().topic_partition.partition == 0


def test_avoided_brokers_are_not_stuck_to() -> None:
    topic = queues([1, 2, 2])
    topic.learn(info([1, 2, 2]), {2})
    assert {topic.stick().topic_partition.partition for _ in range(20)} == {0}


def test_little_waiting_makes_a_partition_likely() -> None:
    topic = queues([1, 1, 1])
    topic.sticky = topic.queues[2]
    topic.queues[0].batches.extend([None] * 4)  # type: ignore[list-item]  # their number alone is looked at
    drawn = []
    for part in range(6):
        topic.sticky = topic.queues[2]
        drawn.append(topic.stick(lambda sum_, part=part: sum_ * part / 6).topic_partition.partition)  # type: ignore[misc]  # a default's type
    # One waits for its turn with 4 before it, the other with none: 1 to 5.
    assert drawn == [0, 1, 1, 1, 1, 1]


def test_crc32_is_librdkafkas() -> None:
    consistent, relaxed = PARTITIONERS["consistent"], PARTITIONERS["crc32"]
    assert isinstance(consistent, KeyHash)
    assert isinstance(relaxed, KeyHash)
    for hashing in (consistent, relaxed):
        assert queues([1] * 7, hashing).of_key(b"key").topic_partition.partition == zlib.crc32(b"key") % 7
    assert queues([1] * 7, consistent).without_key().topic_partition.partition == zlib.crc32(b"") % 7
    topic = queues([1] * 7, relaxed)
    assert len({topic.of_key(b"") for _ in range(200)}) == len({topic.without_key() for _ in range(200)}) == 7


def test_round_robin_goes_round_partitions_with_a_leader() -> None:
    cluster = Cluster(topics={"birds": info([1, -1, 1])})
    chooser = RoundRobinPartitioner()
    chosen = [chooser.partition("birds", None, None, None, None, cluster, None) for _ in range(4)]
    assert chosen == [0, 2, 0, 2]


def test_random_goes_anywhere_while_none_has_a_leader() -> None:
    cluster = Cluster(topics={"birds": info([-1, -1])})
    chooser = RandomPartitioner()
    assert {chooser.partition("birds", None, None, None, None, cluster, None) for _ in range(100)} == {0, 1}


def test_partitioners_are_found_by_name_class_and_object() -> None:
    assert partitioner_of(None, {}) is MURMUR2
    assert isinstance(partitioner_of("round_robin", {}), RoundRobinPartitioner)
    java = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    assert isinstance(partitioner_of(java, {}), RoundRobinPartitioner)
    assert isinstance(partitioner_of("kavka.client.producer.partitioners.RandomPartitioner", {}), RandomPartitioner)
    one = RandomPartitioner()
    assert partitioner_of(one, {}) is one
    for wrong in ("no.such.Class", 7):
        with pytest.raises(ConfigError, match=r"partitioner\.class"):
            partitioner_of(wrong, {})
