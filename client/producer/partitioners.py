"""Which partition a record goes to, when the caller does not say.

By default (`partitioner.class` unset) a key's murmur2 decides, and records without a key stick to one partition until a
batch is full (`sticky.py`). `KeyHash` names that and its relatives; anything else is a `Partitioner`.
"""

import zlib
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import count
from typing import Any, Final, NamedTuple, Protocol

from kavka.client.cluster import NO_LEADER, Cluster
from kavka.client.dice import DICE
from kavka.client.producer.murmur2 import murmur2

_POSITIVE: Final = 0x7FFF_FFFF


class Partitioner(Protocol):
    """Chooses a record's partition. Called by the threads that send, several at once if there are several.

        import zlib

        class BySite:
            def partition(self, topic, key, key_bytes, value, value_bytes, cluster, partition_key):
                return zlib.crc32(partition_key.encode()) % len(cluster.topics[topic].partitions)

        producer = Producer({"bootstrap.servers": "localhost:9092", "partitioner.class": BySite})

    A class may have `configure(settings)`, called once with all settings as given, and `close()`. What it raises,
    `send` raises.
    """

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        partition_key: Any,
    ) -> int:
        """The partition's number. `cluster` knows the topic; `partition_key` is what `send` was given, or None."""


class Keyless(Enum):
    """What becomes of a record that has no key."""

    STICKY = "it goes where the others without key go, until a batch is full there"
    RANDOM = "anywhere"
    HASHED = "as with an empty key"


class KeyHash(NamedTuple):
    """A key's hash decides; `hash_of` gives a number that is not negative. `needs_bytes`: an empty key is none."""

    hash_of: Callable[[bytes], int]
    keyless: Keyless = Keyless.STICKY
    needs_bytes: bool = False


class RoundRobinPartitioner:
    """Each topic's partitions that have a leader in turn, whatever the key; all in turn while none has."""

    def __init__(self) -> None:
        self._turns: Final[dict[str, count[int]]] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        partition_key: Any,
    ) -> int:
        """The next one."""
        numbers = led_partitions(cluster, topic)
        # One step of a counter is indivisible: two threads never get the same.
        turn = next(self._turns.setdefault(topic, count()))
        return numbers[turn % len(numbers)]


class RandomPartitioner:
    """Any partition that has a leader, whatever the key; any at all while none has."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
        partition_key: Any,
    ) -> int:
        """A number by chance."""
        return DICE.choice(led_partitions(cluster, topic))


def led_partitions(cluster: Cluster, topic: str) -> list[int]:
    """The numbers of the topic's partitions that have a leader; all of them if none has. In ascending order."""
    partitions = cluster.topics[topic].partitions
    return sorted(number for number, info in partitions.items() if info.leader_id != NO_LEADER) or sorted(partitions)


def murmur2_hash(key: bytes) -> int:
    """What Java's client takes modulo the number of partitions."""
    return murmur2(key) & _POSITIVE


MURMUR2: Final = KeyHash(murmur2_hash)
PARTITIONERS: Final[Mapping[str, KeyHash | type[Any]]] = {
    "murmur2": MURMUR2,
    "round_robin": RoundRobinPartitioner,
    "random": RandomPartitioner,
    "crc32": KeyHash(zlib.crc32, Keyless.RANDOM, needs_bytes=True),
    # librdkafka's names for what it does. Its default is the second.
    "consistent": KeyHash(zlib.crc32, Keyless.HASHED),
    "consistent_random": KeyHash(zlib.crc32, Keyless.RANDOM, needs_bytes=True),
    "murmur2_random": KeyHash(murmur2_hash, Keyless.RANDOM),
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": RoundRobinPartitioner,
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner": MURMUR2,
}
"""What `partitioner.class` may name, beside a class's own dotted name."""
