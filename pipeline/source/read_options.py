"""Options of reading, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kavka.config.clients.consumer import consumer_settings
from kavka.config.errors import ConfigError
from kavka.pipeline.source.choices import Choice, Kind, ending, starting
from kavka.pipeline.source.errors import OptionError
from kavka.pipeline.source.option_values import (
    check_names,
    client_error,
    client_settings,
    duration_ms,
    size_bytes,
    truth,
    whole_number,
)
from kavka.pipeline.source.subscription import WAYS, Subscription, subscription_of

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"

_EVERYWHERE: Final = (
    *WAYS,
    "path",
    "columns",
    "includeHeaders",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "kafkaConsumer.pollTimeoutMs",
)
_NO_EFFECT: Final = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
"""Spark's own source has them; here the client itself tries again, and there is no group."""
_BATCH: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "pushdown")
_STREAM: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger", "maxTriggerDelay")
_REFUSED: Final = {
    "auto.offset.reset": "startingOffsets says where to begin, failOnDataLoss what to do where records are gone",
    "enable.auto.commit": "the checkpoint holds the offsets, nothing is committed to the group",
    "interceptor.classes": "rows have records as they were written",
    "key.deserializer": "keys are bytes; columns of a DataFrame make something of them",
    "value.deserializer": "values are bytes; columns of a DataFrame make something of them",
}
_OF_GROUPS: Final = ("group.id", "group.instance.id", "group.protocol", "group.remote.assignor")
POLL_TIMEOUT_MS: Final = 120_000
TRIGGER_DELAY_MS: Final = 15 * 60_000
FETCH_BYTES: Final = 4 * 1024 * 1024
"""Of a partition in an answer, where `kafka.max.partition.fetch.bytes` is not given."""
FETCH_WAIT_MS: Final = 10
"""What is to be read is there. A fetch beyond a range's end would hold up the worker's next range."""


@dataclass(frozen=True)
class ReadOptions:
    """Immutable; goes to executors by pickle."""

    client: Mapping[str, str]
    """A consumer's settings by Kafka's names."""
    subscription: Subscription
    columns: tuple[str, ...]
    fails_on_data_loss: bool
    isolation_level: str
    """read_committed, which is the default here, or read_uncommitted."""
    directories: tuple[str, ...]
    """Of `path`: where segment files are read; none for records over TCP."""
    starting: Choice
    ending: Choice
    min_partitions: int | None
    max_records_per_partition: int | None
    poll_timeout_ms: int
    pushes_down: bool
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_trigger_delay_ms: int = TRIGGER_DELAY_MS
    max_bytes: int | None = None

    @property
    def is_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    @property
    def consumer_settings(self) -> dict[str, Any]:
        """What the executors' consumers are made with."""
        own = {
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "isolation.level": self.isolation_level,
            "allow.auto.create.topics": "false",
        }
        quick = {"max.partition.fetch.bytes": str(FETCH_BYTES), "fetch.max.wait.ms": str(FETCH_WAIT_MS)}
        return {**quick, **self.client, **own}


def columns_of(options: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that rows have. Raises OptionError."""
    every = (*COLUMNS, HEADERS) if truth(options, "includeHeaders", default=False) else COLUMNS
    text = options.get("columns")
    if text is None:
        return every
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    check_columns(names)
    return names


def check_columns(names: Sequence[str]) -> None:
    """Raises OptionError for a name that is no column, is there twice, or if there are none."""
    wrong = next((name for name in names if name not in (*COLUMNS, HEADERS)), None)
    if wrong is not None:
        raise OptionError(f"there is no column {wrong}; there are {', '.join((*COLUMNS, HEADERS))}")
    if not names or len(set(names)) != len(names):
        raise OptionError(f"columns has to name each column once, not {', '.join(names) or 'none'}")


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """`options` by their names in lower case, as Spark gives them. Raises OptionError, for whatever is wrong first."""
    _check_other_way(options, streaming=streaming)
    known = (*_EVERYWHERE, *_NO_EFFECT, *_STREAM, *(() if streaming else _BATCH))
    check_names(options, known, "streaming reads" if streaming else "batch reads")
    client = client_settings(options, _REFUSED)
    for name in _OF_GROUPS:
        # There is no group: partitions are Spark's to share out. Spark's source takes such a name too.
        client.pop(name, None)
    directories = tuple(each.strip() for each in options.get("path", "").split(",") if each.strip())
    if not client.get("bootstrap.servers") and not directories:
        raise OptionError("kafka.bootstrap.servers is to be given, or path for segment files")
    level = client.get("isolation.level", "read_committed").strip().lower()
    if level not in ("read_committed", "read_uncommitted"):
        raise OptionError(f"kafka.isolation.level is read_committed or read_uncommitted, not {level}")
    begin = starting(options, default=Kind.LATEST if streaming else Kind.EARLIEST)
    if not streaming and begin.may_mean_latest and begin.kind in (Kind.LATEST, Kind.OFFSETS):
        raise OptionError(f"{begin.option}: a batch read cannot start at the latest offset, there is nothing behind it")
    checked = ReadOptions(
        client=client,
        subscription=subscription_of(options),
        columns=columns_of(options),
        fails_on_data_loss=truth(options, "failOnDataLoss", default=True),
        isolation_level=level,
        directories=directories,
        starting=begin,
        ending=ending({} if streaming else options),
        min_partitions=whole_number(options, "minPartitions"),
        max_records_per_partition=whole_number(options, "maxRecordsPerPartition"),
        poll_timeout_ms=whole_number(options, "kafkaConsumer.pollTimeoutMs") or POLL_TIMEOUT_MS,
        pushes_down=truth(options, "pushdown", default=False),
        max_offsets=whole_number(options, "maxOffsetsPerTrigger"),
        min_offsets=whole_number(options, "minOffsetsPerTrigger"),
        max_trigger_delay_ms=duration_ms(options, "maxTriggerDelay", TRIGGER_DELAY_MS),
        max_bytes=size_bytes(options, "maxBytesPerTrigger"),
    )
    _check_together(checked)
    return checked


def _check_other_way(options: Mapping[str, str], *, streaming: bool) -> None:
    """Spark's source ignores limits of triggers in batch reads; ends in streams are an error to both."""
    if streaming:
        for name in _BATCH:
            if name.lower() in options:
                raise OptionError(f"{name} is for batch reads only")


def _check_together(checked: ReadOptions) -> None:
    least, most = checked.min_offsets, checked.max_offsets
    if least is not None and most is not None and least > most:
        raise OptionError(f"minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, which is {most}")
    # Without brokers a mistake in the others would show when some are given.
    brokers = {"bootstrap.servers": checked.client.get("bootstrap.servers") or "localhost:9092"}
    try:
        consumer_settings({**checked.consumer_settings, **brokers})
    except ConfigError as error:
        raise client_error(error) from None
