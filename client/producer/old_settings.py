"""The settings of the producer of Kafka 0.8: they keep what they meant there.

Whoever gives one of its names gets its producer: nobody's acknowledgement counts unless asked for, `send` waits and
raises (`producer.type=sync`) or puts into a queue that is bounded in records (`async`), and one request at a time goes
to a broker.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kavka.client.producer.old_partitioner import old_partitioner
from kavka.config.errors import ConfigError

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_CODECS: Final = {"0": "none", "1": "gzip", "2": "snappy", "3": "lz4"}
OLD_NAMES: Final = frozenset(
    {
        "metadata.broker.list",
        "request.required.acks",
        "producer.type",
        "serializer.class",
        "key.serializer.class",
        "compression.codec",
        "compressed.topics",
        "message.send.max.retries",
        "topic.metadata.refresh.interval.ms",
        "queue.buffering.max.ms",
        "queue.buffering.max.messages",
        "queue.enqueue.timeout.ms",
        "batch.num.messages",
    }
)
"""Names that 0.8 alone has. `request.timeout.ms`, `retry.backoff.ms`, `send.buffer.bytes`, `partitioner.class` and
`client.id` are of both; beside one of these they have 0.8's defaults."""


class OldWays(NamedTuple):
    """What 0.8 did that no setting of today says. Immutable."""

    is_sync: bool
    queue_records: int
    enqueue_timeout_ms: int
    """0: no waiting for room in the queue; -1: without end."""
    batch_records: int
    refreshes_always: bool
    """topic.metadata.refresh.interval.ms=0: ask for metadata before each record."""
    compressed_topics: frozenset[str] | None


def translate(given: Mapping[str, Any]) -> tuple[dict[str, Any], OldWays | None]:
    """Today's settings and the rest; without any of 0.8's names the settings as they are, and None.

    Raises ConfigError.
    """
    if not OLD_NAMES & given.keys():
        return dict(given), None
    old = {name: value for name, value in given.items() if name in OLD_NAMES and value is not None}
    made: dict[str, Any] = {name: value for name, value in given.items() if name not in OLD_NAMES}
    kind = str(old.get("producer.type", "sync"))
    if kind not in ("sync", "async"):
        raise ConfigError("producer.type", kind, "Invalid value, valid values are sync/async")
    is_sync = kind == "sync"
    refresh_ms = _number(old, "topic.metadata.refresh.interval.ms", 600_000, -1)
    linger_ms = _number(old, "queue.buffering.max.ms", 5_000, 0)
    serializer = old.get("serializer.class")
    retries = _number(old, "message.send.max.retries", 3, 0)
    tries_ms = (retries + 1) * (
        _number(made, "request.timeout.ms", 10_000, 1) + _number(made, "retry.backoff.ms", 100, 0)
    )
    defaults = {
        "bootstrap.servers": old.get("metadata.broker.list"),
        "acks": _acks(old),
        "retries": retries,
        "retry.backoff.ms": 100,
        "retry.backoff.max.ms": made.get("retry.backoff.ms", 100),
        "request.timeout.ms": 10_000,
        "send.buffer.bytes": 102_400,
        "linger.ms": 0 if is_sync else linger_ms,
        "value.serializer": serializer,
        "key.serializer": old.get("key.serializer.class", serializer),
        "compression.type": _codec(old),
        "metadata.max.age.ms": refresh_ms if refresh_ms > 0 else _LONG_MAX,
        "enable.idempotence": False,
        "max.in.flight.requests.per.connection": 1,
        # No more than the tries may take; beside these the queue's records were the only limit.
        "delivery.timeout.ms": min(linger_ms + tries_ms, _INT_MAX),
        "max.request.size": _INT_MAX,
        "buffer.memory": _LONG_MAX,
    }
    made["partitioner.class"] = old_partitioner(made.get("partitioner.class"), given)
    for name, value in defaults.items():
        if value is not None:
            made.setdefault(name, value)
    topics = old.get("compressed.topics") or ()
    if isinstance(topics, str):
        topics = [topic.strip() for topic in topics.split(",") if topic.strip()]
    ways = OldWays(
        is_sync,
        _number(old, "queue.buffering.max.messages", 10_000, 1),
        _number(old, "queue.enqueue.timeout.ms", -1, -1),
        _number(old, "batch.num.messages", 200, 1),
        refresh_ms == 0,
        frozenset(topics) or None,
    )
    return made, ways


def _number(old: Mapping[str, Any], name: str, default: int, least: int) -> int:
    text = old.get(name, default)
    try:
        number = int(text)
    except (TypeError, ValueError):
        raise ConfigError(name, text, "Not a number of type INT") from None
    if not least <= number <= _INT_MAX:
        raise ConfigError(name, text, f"Value must be at least {least}")
    return number


def _acks(old: Mapping[str, Any]) -> str:
    """0.8 took any number: more than one was so many replicas, which no broker counts any more."""
    acks = str(old.get("request.required.acks", "0")).strip()
    if acks not in ("0", "1", "-1"):
        raise ConfigError("request.required.acks", acks, "Expected 0, 1 or -1")
    return acks


def _codec(old: Mapping[str, Any]) -> str:
    codec = str(old.get("compression.codec", "none")).strip().lower()
    codec = _CODECS.get(codec, codec)
    if codec not in _CODECS.values():
        raise ConfigError("compression.codec", codec, "Expected none, gzip, snappy or lz4, or its number")
    return codec
