"""Partitioners of the producer of Kafka 0.8: `partition(key, count)`, and nothing but the key."""

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kavka.client.cluster import Cluster
from kavka.client.dice import DICE
from kavka.client.producer.partitioners import led_partitions
from kavka.client.serialization import named_object
from kavka.config.errors import ConfigError

_INT_MIN: Final = -(2**31)
_OWN: Final = ("kafka.producer.DefaultPartitioner", "kafka.producer.ByteArrayPartitioner")


def old_partitioner(setting: Any, given: Mapping[str, Any]) -> "OldPartitioner":
    """What `partitioner.class` says beside one of 0.8's names. Raises ConfigError."""
    if setting is None or setting in _OWN:
        return OldPartitioner(default_partition)
    if isinstance(setting, str):
        try:
            setting = named_object(setting)
        except ImportError as error:
            problem = f"Class {setting} could not be found: {error}"
            raise ConfigError("partitioner.class", setting, problem) from None
    made = setting() if isinstance(setting, type) else setting
    if hasattr(made, "configure"):
        made.configure(given)
    return OldPartitioner(made.partition if hasattr(made, "partition") else made)


class OldPartitioner:
    """0.8's rule: `partition(key, count)` of a partitioner for records with a key; without one a partition that has a
    leader, by chance, the same one until the metadata are fetched anew.

    The key is the `partition_key` where there is one. Threads: any; an entry of `_stuck` is replaced whole.
    """

    def __init__(self, choose: Callable[[Any, int], int]) -> None:
        self._choose: Final = choose
        self._stuck: Final[dict[str, tuple[int, int]]] = {}

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
        """The partition's number."""
        if partition_key is None:
            partition_key = key
        if partition_key is not None:
            return self._choose(partition_key, len(cluster.topics[topic].partitions))
        version, partition = self._stuck.get(topic, (-1, -1))
        if version != cluster.version:
            partition = DICE.choice(led_partitions(cluster, topic))
            self._stuck[topic] = cluster.version, partition
        return partition


def default_partition(key: Any, count: int) -> int:
    """0.8's DefaultPartitioner: the key's hash code in Java, without its sign, modulo the number of partitions."""
    code = hash_code(key)
    return (0 if code == _INT_MIN else abs(code)) % count


def hash_code(key: Any) -> int:
    """What Java's `hashCode()` is of texts and numbers, and of bytes by their content, as in ByteArrayPartitioner."""
    if isinstance(key, str):
        encoded = key.encode("utf-16-le", "surrogatepass")
        return _fold(struct.unpack(f"<{len(encoded) // 2}H", encoded), 0)
    if isinstance(key, bytes | bytearray):
        return _fold((byte - 256 if byte > 127 else byte for byte in key), 1)
    if isinstance(key, bool):
        return 1231 if key else 1237
    if isinstance(key, int):
        if -(2**31) <= key < 2**31:
            return key
        bits = key & 0xFFFF_FFFF_FFFF_FFFF
        return _signed(bits ^ bits >> 32)
    return _signed(hash(key))


def _fold(parts: Iterable[int], start: int) -> int:
    code = start
    for part in parts:
        code = (31 * code + part) & 0xFFFF_FFFF
    return _signed(code)


def _signed(bits: int) -> int:
    return ((bits & 0xFFFF_FFFF) ^ 0x8000_0000) - 0x8000_0000
