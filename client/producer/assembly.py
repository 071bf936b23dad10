"""A producer's parts, made of its settings."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from kavka.client.client_thread import ClientThread
from kavka.client.coordinators import Coordinators
from kavka.client.interceptors import interceptors_of
from kavka.client.metadata import Metadata
from kavka.client.network_client import NetworkClient
from kavka.client.opening import open_network, retry_backoff
from kavka.client.producer.accumulator import AccumulatorSettings, RecordAccumulator
from kavka.client.producer.old_settings import OldWays
from kavka.client.producer.old_ways import OldSending
from kavka.client.producer.outcomes import Outcomes, RetrySettings
from kavka.client.producer.partitioners import MURMUR2, PARTITIONERS, KeyHash
from kavka.client.producer.pipeline import Pipeline, Stages
from kavka.client.producer.producer_ids import IdempotentIds
from kavka.client.producer.producer_metrics import ProducerMetrics
from kavka.client.producer.sender import Sender, SenderSettings
from kavka.client.producer.transactions import Transactions, TransactionSettings
from kavka.client.serialization import named_object, serializer_of
from kavka.config.clients import ProducerSettings
from kavka.config.errors import ConfigError
from kavka.protocol.records.appending import MAX_RECORDS
from kavka.protocol.records.compression import Codec

_LEVELS: Final = {
    Codec.GZIP: "compression_gzip_level",
    Codec.LZ4: "compression_lz4_level",
    Codec.ZSTD: "compression_zstd_level",
}
_GZIP_DEFAULT: Final = -1
LEAST_SLEEP_MS: Final = 50.0
"""Of the client's thread, however short request.timeout.ms is: it would not sleep at all."""


class Parts(NamedTuple):
    """What a producer is made of."""

    stages: Stages
    metadata: Metadata
    accumulator: RecordAccumulator
    metrics: ProducerMetrics
    thread: ClientThread
    pipeline: Pipeline
    transactions: Transactions | None
    old: OldSending | None


def now_ms() -> float:
    """The clock of everything that waits here."""
    return time.monotonic() * 1000


def assemble(settings: ProducerSettings, ways: OldWays | None = None) -> Parts:
    """Nothing is connected, and no thread runs yet; `ways` are those of the 0.8 producer.

    Raises ConfigError, OSError when no descriptors are left, and what constructors of the user's classes raise.
    """
    partitioner = partitioner_of(settings.partitioner_class, settings.given)
    key_hash = partitioner if isinstance(partitioner, KeyHash) else MURMUR2
    interceptors = interceptors_of(settings.interceptor_classes, settings.given)
    key_serializer = serializer_of(settings.key_serializer, "key.serializer", settings.given, is_key=True)
    value_serializer = serializer_of(settings.value_serializer, "value.serializer", settings.given, is_key=False)

    network, metadata, metrics = open_network(
        settings,
        max_in_flight=settings.max_in_flight_requests_per_connection,
        max_idle_topic_ms=settings.metadata_max_idle_ms,
        allow_auto_create=True,
        now_ms=now_ms,
    )
    accumulator = RecordAccumulator(_accumulator_settings(settings, ways, key_hash), now_ms, network.wakeup)
    metadata.listeners.append(accumulator.learn)
    producer_metrics = ProducerMetrics(metrics, accumulator.memory)
    ids = _producer_ids(settings, accumulator, network, metadata)
    retries = RetrySettings(settings.retries, settings.retry_backoff_ms, settings.retry_backoff_max_ms)
    outcomes = Outcomes(retries, accumulator, metadata, ids, producer_metrics)
    sending = SenderSettings(
        settings.acks,
        settings.max_in_flight_requests_per_connection,
        settings.max_request_size,
        settings.request_timeout_ms,
        # As in Kafka it is a part of the other, and nothing without it.
        settings.partitioner_availability_timeout_ms if settings.partitioner_adaptive_partitioning_enable else 0,
        settings.transactional_id,
    )
    sender = Sender(sending, accumulator, network, metadata, outcomes, ids, producer_metrics, now_ms)
    thread = ClientThread(f"kavka-producer-{settings.client_id}", network, sender, metadata=metadata, now_ms=now_ms)
    transactions = ids if isinstance(ids, Transactions) else None
    if transactions is None:
        thread.lend(network, max(settings.request_timeout_ms / 4, LEAST_SLEEP_MS))
        accumulator.send_at_once = lambda queue: thread.step_in(partial(sender.send_at_once, queue))
    stages = Stages(
        interceptors,
        key_serializer,
        value_serializer,
        None if isinstance(partitioner, KeyHash) else partitioner,
        settings.partitioner_ignore_keys,
        transactions,
    )
    pipeline = Pipeline(stages, accumulator, metadata, thread, settings.max_block_ms, now_ms, producer_metrics.called)
    old = None
    if ways is not None:
        old = OldSending(ways, pipeline, thread, accumulator, metadata, now_ms, settings.max_block_ms)
    return Parts(stages, metadata, accumulator, producer_metrics, thread, pipeline, transactions, old)


def _producer_ids(
    settings: ProducerSettings, accumulator: RecordAccumulator, network: NetworkClient, metadata: Metadata
) -> IdempotentIds | Transactions | None:
    backoff = retry_backoff(settings)
    if settings.transactional_id is not None:
        coordinators = Coordinators(network, metadata, backoff)
        transactional = TransactionSettings(settings.transactional_id, settings.transaction_timeout_ms)
        return Transactions(transactional, accumulator, network, coordinators, backoff, now_ms)
    if settings.enable_idempotence:
        return IdempotentIds(accumulator, network, metadata.nodes, backoff, now_ms)
    return None


def partitioner_of(setting: Any, given: Mapping[str, Any]) -> Any:
    """What `partitioner.class` says: a KeyHash, or a Partitioner that is made and configured. Raises ConfigError."""
    if setting is None:
        return MURMUR2
    if isinstance(setting, str):
        known = PARTITIONERS.get(setting)
        if known is None:
            try:
                known = named_object(setting)
            except ImportError as error:
                problem = f"Class {setting} could not be found: {error}"
                raise ConfigError("partitioner.class", setting, problem) from None
        setting = known
    if isinstance(setting, KeyHash):
        return setting
    made = setting() if isinstance(setting, type) else setting
    if not hasattr(made, "partition"):
        raise ConfigError("partitioner.class", repr(setting), "Expected a class or an object with partition()")
    if hasattr(made, "configure"):
        made.configure(given)
    return made


def _accumulator_settings(settings: ProducerSettings, ways: OldWays | None, key_hash: KeyHash) -> AccumulatorSettings:
    codec = Codec[settings.compression_type.upper()]
    level = getattr(settings, _LEVELS[codec]) if codec in _LEVELS else None
    return AccumulatorSettings(
        batch_size_bytes=settings.batch_size,
        linger_ms=settings.linger_ms,
        buffer_memory_bytes=settings.buffer_memory,
        max_request_size_bytes=settings.max_request_size,
        delivery_timeout_ms=settings.delivery_timeout_ms,
        codec=codec,
        level=None if codec is Codec.GZIP and level == _GZIP_DEFAULT else level,
        hashing=key_hash,
        is_adaptive=settings.partitioner_adaptive_partitioning_enable,
        batch_records=MAX_RECORDS if ways is None else ways.batch_records,
        compressed_topics=None if ways is None else ways.compressed_topics,
    )
