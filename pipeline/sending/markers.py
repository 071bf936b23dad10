"""Markers: how far a writer got, in a compacted topic, written in the same transactions as what it wrote."""

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kavka.client import Admin, ConfigResource, NewTopic
from kavka.client.api_errors import ClusterAuthorizationError, KafkaError, TopicExistsError
from kavka.config.clients.every_client import CommonSettings
from kavka.pipeline.secret_references import resolved_settings

MARKER_TOPIC: Final = "_kavka_pipeline_markers"
MARKER_PARTITIONS: Final = 16
"""A marker is behind those of open transactions in its partition: more of them keep writers out of each other's way."""
_LONGEST_MARKER: Final = 1_000_000
"""Bytes of a key or a value that are written, and looked at: about what a broker takes as a record by default."""
_CONFIGS: Final = {
    "cleanup.policy": "compact",
    # What is read at the start of each batch stays small: the cleaner takes closed segments alone.
    "segment.bytes": str(4 << 20),
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
}


class MarkerTopicError(KafkaError):
    """The topic of markers is not one that markers are safe in; the message says what to do."""


class MarkerTooLongError(KafkaError):
    """A marker that would not be read again, so it is not written."""


class MarkerName(NamedTuple):
    """Whose marker: a writer, by its query's id, and the topic and partition that it writes, or reads from a lake."""

    query: str
    topic: str
    partition: int

    def encode(self) -> bytes:
        """The record's key; the same bytes for the same name. Raises MarkerTooLongError."""
        return _encoded({"query": self.query, "topic": self.topic, "partition": self.partition})

    @property
    def transactional_id(self) -> str:
        """Of the one producer that may move this marker. No topic has a slash in its name: no two names share an id."""
        return f"kavka-pipeline-{self.query}/{self.topic}/{self.partition}"


class Marker(NamedTuple):
    """How far: `position` in batch `batch_id` (rows, or the next offset to be read); `is_whole` says there is no more.

    `details` are the writer's own, of JSON's types.
    """

    batch_id: int
    position: int = 0
    is_whole: bool = False
    details: Mapping[str, Any] = {}

    def encode(self) -> bytes:
        """The record's value. Raises MarkerTooLongError."""
        return _encoded({"batch": self.batch_id, "position": self.position, "whole": self.is_whole, **self.details})


def _encoded(fields: Mapping[str, Any]) -> bytes:
    text = json.dumps(fields).encode()
    if len(text) > _LONGEST_MARKER:
        # One that nobody reads again would have its batch written twice.
        raise MarkerTooLongError(f"a marker of {len(text)} bytes is longer than {_LONGEST_MARKER}: write fewer topics")
    return text


def decoded(key: bytes | None, value: bytes | None) -> tuple[MarkerName, Marker | None] | None:
    """A record of the topic; the marker is None for a tombstone, all of it for what is no marker."""
    if key is None or len(key) > _LONGEST_MARKER or (value is not None and len(value) > _LONGEST_MARKER):
        return None
    try:
        name = json.loads(key)
        found = None if value is None else json.loads(value)
        whose = MarkerName(str(name["query"]), str(name["topic"]), int(name["partition"]))
        if found is None:
            return whose, None
        details = {each: found[each] for each in found if each not in ("batch", "position", "whole")}
        return whose, Marker(int(found["batch"]), int(found["position"]), bool(found["whole"]), details)
    except (ValueError, TypeError, KeyError, RecursionError, ArithmeticError):
        return None


class MarkerPlace(NamedTuple):
    """Where markers are: clients' settings (secrets by reference), the topic, its number of partitions. Picklable."""

    settings: Mapping[str, str]
    topic: str
    partition_count: int

    def partition_of(self, name: MarkerName) -> int:
        """Where its next marker goes: neighbours lie in partitions of their own, as long as there are enough."""
        return (zlib.crc32(f"{name.query}\0{name.topic}".encode()) + name.partition) % self.partition_count


def common_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Of a client's settings those that a consumer and an administrator have as well as a producer.

    With secrets in place of references to them: for a client that is made right now. Raises SecretError.
    """
    return resolved_settings({name: value for name, value in settings.items() if name in CommonSettings.ROWS})


def marker_place(admin: Admin, settings: Mapping[str, str], topic: str = MARKER_TOPIC) -> MarkerPlace:
    """The topic of markers, which is made if it is not there. Raises MarkerTopicError, KafkaError.

    It gets three replicas, two of which have to be in sync, where there are three brokers.
    """
    resource = ConfigResource.topic(topic)
    if topic not in admin.list_topics():
        replicas = min(3, len(admin.describe_cluster().nodes))
        configs = {**_CONFIGS, "min.insync.replicas": str(2 if replicas == 3 else 1)}
        try:
            admin.create_topics([NewTopic(topic, MARKER_PARTITIONS, replicas, configs)])
        except TopicExistsError:
            pass  # Another query's driver was quicker.
        except ClusterAuthorizationError as error:
            raise MarkerTopicError(
                f"topic {topic!r} has to be created, with cleanup.policy=compact: {error}"
            ) from error
    policy = admin.describe_configs([resource], names=["cleanup.policy"])[resource]["cleanup.policy"].value
    if policy != "compact":
        raise MarkerTopicError(
            f"topic {topic!r} has cleanup.policy={policy}, which loses markers: set compact, or name another topic"
        )
    return MarkerPlace(dict(settings), topic, len(admin.describe_topics([topic])[topic].partitions))
