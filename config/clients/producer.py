"""The producer's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, GzipLevel, OneOf, at_least, between
from kavka.config.clients.checks import NotEmpty
from kavka.config.clients.every_client import CommonSettings
from kavka.config.clients.loading import Given, load
from kavka.config.errors import ConfigError
from kavka.config.setting import setting
from kavka.config.values import BOOLEAN, CLASS, HIGH, INT, INT_MAX, LIST, LONG, MEDIUM, STRING

MAX_IN_FLIGHT_WITH_IDEMPOTENCE: Final = 5
_TWO_PHASES: Final = "transaction.two.phase.commit.enable"


class ProducerSettings(CommonSettings):
    """A producer's settings, checked together. Immutable."""

    DOMAIN = "producer"

    given: Mapping[str, Any]
    """The settings as they were given, by Kafka's names: what serializers and the like are configured with."""
    acks: int = setting(
        "acks",
        STRING,
        "all",
        "Whose acknowledgement counts: all replicas' in sync (all, -1), the leader's (1), nobody's (0).",
        check=OneOf("all", "-1", "0", "1"),
    )
    batch_size: int = setting(
        "batch.size",
        INT,
        16_384,
        "Bytes of records of a partition that go out together; 0: each by itself.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    buffer_memory: int = setting(
        "buffer.memory",
        LONG,
        33_554_432,
        "Bytes of records that wait to be sent; who sends more waits for max.block.ms at most.",
        check=NOT_NEGATIVE,
        importance=HIGH,
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level", INT, -1, "Of gzip.", check=GzipLevel(), importance=MEDIUM
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level", INT, 9, "Of lz4.", check=between(1, 17), importance=MEDIUM
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level", INT, 3, "Of zstd.", check=between(-131_072, 22), importance=MEDIUM
    )
    compression_type: str = setting(
        "compression.type",
        STRING,
        "none",
        "The codec of batches.",
        check=OneOf("none", "gzip", "snappy", "lz4", "zstd"),
        importance=HIGH,
    )
    delivery_timeout_ms: int = setting(
        "delivery.timeout.ms",
        INT,
        120_000,
        "From send() on: how long until a record is acknowledged or has failed.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    enable_idempotence: bool = setting(
        "enable.idempotence",
        BOOLEAN,
        True,
        "Each record is written once, and in order, however often it has to be sent. Off where acks, retries or "
        "max.in.flight.requests.per.connection are set so that it cannot be.",
    )
    interceptor_classes: tuple[Any, ...] = setting(
        "interceptor.classes", LIST, (), "What sees each record before it is serialized, and its acknowledgement."
    )
    key_serializer: Any = setting(
        "key.serializer", CLASS, None, "Makes bytes of keys. Unset: they are bytes.", importance=HIGH
    )
    linger_ms: int = setting(
        "linger.ms",
        LONG,
        5,
        "How long a batch that is not full waits for more records.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    max_block_ms: int = setting(
        "max.block.ms",
        LONG,
        60_000,
        "How long send() waits for metadata and memory, and calls for transactions for their coordinator.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    max_in_flight_requests_per_connection: int = setting(
        "max.in.flight.requests.per.connection",
        INT,
        5,
        "Requests to a broker that have no answer yet.",
        check=POSITIVE,
    )
    max_request_size: int = setting(
        "max.request.size",
        INT,
        1_048_576,
        "Bytes of a request, and so of a record before compression.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    metadata_max_idle_ms: int = setting(
        "metadata.max.idle.ms",
        LONG,
        300_000,
        "A topic to which nothing was sent for so long is no longer asked for.",
        check=at_least(5_000),
    )
    partitioner_adaptive_partitioning_enable: bool = setting(
        "partitioner.adaptive.partitioning.enable",
        BOOLEAN,
        True,
        "Records without key go rather to partitions whose brokers keep up (KIP-794).",
    )
    partitioner_availability_timeout_ms: int = setting(
        "partitioner.availability.timeout.ms",
        LONG,
        0,
        "A partition whose broker took no batch for so long gets no records without key; 0: it does, and without "
        "partitioner.adaptive.partitioning.enable it does, too.",
        check=NOT_NEGATIVE,
    )
    partitioner_class: Any = setting(
        "partitioner.class", CLASS, None, "Chooses partitions in place of the built-in one.", importance=MEDIUM
    )
    partitioner_ignore_keys: bool = setting(
        "partitioner.ignore.keys", BOOLEAN, False, "Treat records with keys as those without.", importance=MEDIUM
    )
    receive_buffer_bytes: int = setting(
        "receive.buffer.bytes",
        INT,
        32_768,
        "SO_RCVBUF; -1: as the operating system has it.",
        check=at_least(-1),
        importance=MEDIUM,
    )
    retries: int = setting(
        "retries",
        INT,
        INT_MAX,
        "How often a batch is sent again; delivery.timeout.ms ends it in any case.",
        check=between(0, INT_MAX),
        importance=HIGH,
    )
    transaction_timeout_ms: int = setting(
        "transaction.timeout.ms", INT, 60_000, "The coordinator aborts a transaction that is older."
    )
    transactional_id: str | None = setting(
        "transactional.id",
        STRING,
        None,
        "Makes the producer transactional: who comes later with this id takes over.",
        check=NotEmpty(),
    )
    value_serializer: Any = setting(
        "value.serializer", CLASS, None, "Makes bytes of values. Unset: they are bytes.", importance=HIGH
    )


def producer_settings(given: Mapping[str, Any] | None = None, **keywords: Any) -> ProducerSettings:
    """Settings by Kafka's names, and by keywords with underscores in place of dots; a keyword counts over a name.

    Values are text, as in properties files, or of the setting's own type. Raises ConfigError.
    """
    loaded = load(ProducerSettings, given, keywords, "producer")
    values = loaded.values
    values["acks"] = -1 if values["acks"] == "all" else int(values["acks"])
    if str(loaded.given.get(_TWO_PHASES, "false")).lower() != "false":
        raise ConfigError(_TWO_PHASES, loaded.given[_TWO_PHASES], "Two-phase commit (KIP-939) is not here")
    _check_idempotence(loaded)
    _check_delivery_timeout(loaded)
    transactional_id = values["transactional.id"]
    return loaded.settings(ProducerSettings, transactional_id and f"producer-{transactional_id}")


def _check_idempotence(loaded: Given) -> None:
    values = loaded.values
    if values["enable.idempotence"]:
        asked_for = "enable.idempotence" in loaded.given
        in_flight = "max.in.flight.requests.per.connection"
        if values["retries"] == 0:
            if asked_for:
                raise ConfigError(None, None, "Must set retries to non-zero when using the idempotent producer.")
            values["enable.idempotence"] = False
        if values["acks"] != -1:
            if asked_for:
                reason = "Must set acks to all in order to use the idempotent producer."
                raise ConfigError(None, None, f"{reason} Otherwise we cannot guarantee idempotence.")
            values["enable.idempotence"] = False
        if values[in_flight] > MAX_IN_FLIGHT_WITH_IDEMPOTENCE:
            reason = f"To use the idempotent producer, {in_flight} must be set to at most 5."
            raise ConfigError(None, None, f"{reason} Current value is {values[in_flight]}.")
    if not values["enable.idempotence"] and values["transactional.id"] is not None:
        raise ConfigError(None, None, "Cannot set a transactional.id without also enabling idempotence.")


def _check_delivery_timeout(loaded: Given) -> None:
    values = loaded.values
    least_ms = min(values["linger.ms"] + values["request.timeout.ms"], INT_MAX)
    if values["delivery.timeout.ms"] < least_ms:
        if "delivery.timeout.ms" in loaded.given:
            reason = "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms"
            raise ConfigError(None, None, reason)
        values["delivery.timeout.ms"] = least_ms
