"""The log's side of an audit: which records a partition has, from its brokers or from its files.

Control records and those of aborted transactions are no records. Only offsets and times are kept.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from kavka.client.admin import Admin
from kavka.client.admin.types.configs import ConfigResource, ConfigResourceType
from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.errors import InvalidOffsetError
from kavka.client.topic_partition import TopicPartition
from kavka.config.clients.admin import AdminSettings
from kavka.pipeline.secret_references import resolved_settings

Integers = np.ndarray[Any, np.dtype[np.int64]]

_POLL_MS: Final = 200
_MOST_RECORDS: Final = 65_536
_LARGEST_MS: Final = ((1 << 63) - 1) // 1000


class AuditError(Exception):
    """An audit cannot be made, or not to its end; one line says why."""


class RecordsGoneError(Exception):
    """Retention was faster: the log begins at `first` now."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the log begins at {first} now")
        self.first: Final = first


class Places(NamedTuple):
    """Records side by side, in the order of their offsets; times in microseconds since 1970, -1 for none."""

    offsets: Integers
    times_us: Integers


class LogSide(Protocol):
    """Where records are asked for. One thread's."""

    def partitions(self, topic: str) -> list[int]:
        """Those of the topic; none for one that is not there."""

    def bounds(self, topic: str, partition: int) -> range | None:
        """From the log's first offset to its last stable one; None for a partition that is not there."""

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[Places]:
        """Those from `start` on, before `end`. Raises RecordsGoneError, AuditError."""

    def is_compacted(self, topic: str) -> bool:
        """Whether records may go while later ones with their keys stay."""


class BrokerSide:
    """Asks brokers, as a consumer that reads what is committed. `close` it in the end."""

    def __init__(self, settings: Mapping[str, Any], progress_timeout_ms: int = 60_000) -> None:
        """`settings`: a client's, with `bootstrap.servers`; references to secrets are resolved here.

        Raises ConfigError, SecretError.
        """
        fixed = {"isolation.level": "read_committed", "auto.offset.reset": "none", "enable.auto.commit": "false"}
        given = {key: str(value) for key, value in settings.items() if key != "group.id"}
        self._settings: Final = resolved_settings(given) | fixed
        self._consumer: Final = Consumer(self._settings)
        self._timeout_s: Final = progress_timeout_ms / 1000

    def partitions(self, topic: str) -> list[int]:
        return sorted(self._consumer.partitions_for(topic)) if topic in self._consumer.list_topics() else []

    def bounds(self, topic: str, partition: int) -> range | None:
        if partition not in self.partitions(topic):
            return None
        place = TopicPartition(topic, partition)
        return range(self._consumer.beginning_offsets([place])[place], self._consumer.end_offsets([place])[place])

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[Places]:
        place = TopicPartition(topic, partition)
        consumer = self._consumer
        consumer.assign([place])
        consumer.seek(place, start)
        position, progress_s = start, time.monotonic()
        # By position: what compaction or a marker leaves at the end is no record, and will not come.
        while position < end:
            try:
                polled = consumer.poll_columns(_POLL_MS, _MOST_RECORDS)
            except InvalidOffsetError:
                raise self._gone(place, position) from None
            for columns in polled:
                count = int(np.searchsorted(columns.offsets, end))
                yield Places(columns.offsets[:count], _microseconds(columns.timestamps_ms[:count]))
            reached = consumer.position(place)
            if reached > position:
                position, progress_s = reached, time.monotonic()
            elif time.monotonic() - progress_s > self._timeout_s:
                raise AuditError(f"{place}: nothing came from offset {position} on for {self._timeout_s:.0f} s")

    def is_compacted(self, topic: str) -> bool:
        known = {name: value for name, value in self._settings.items() if name in AdminSettings.ROWS}
        with Admin(known) as admin:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic)
            found = admin.describe_configs([resource], names=["cleanup.policy"])[resource]
        return "compact" in (found["cleanup.policy"].value or "")

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _gone(self, place: TopicPartition, position: int) -> Exception:
        first = self._consumer.beginning_offsets([place])[place]
        if first > position:
            return RecordsGoneError(first)
        return AuditError(f"{place}: the log ends before {position} now: it was cut, or made anew")


class FileSide:
    """Reads log directories, with no broker at all or beside it."""

    def __init__(self, directories: Sequence[str], compacted: Sequence[str] = ()) -> None:
        """`compacted`: the topics that are; files do not say it."""
        self._directories: Final = directories
        self._compacted: Final = frozenset(compacted)

    def partitions(self, topic: str) -> list[int]:
        from kavka.pipeline.files.folders import partitions

        return [each.partition for each in partitions(self._directories) if each.topic == topic]

    def bounds(self, topic: str, partition: int) -> range | None:
        from kavka.pipeline.files.bounds import bounds
        from kavka.pipeline.files.errors import PartitionMissingError

        try:
            return bounds(self._directories, topic, partition, "read_committed")
        except PartitionMissingError:
            return None

    def records(self, topic: str, partition: int, start: int, end: int) -> Iterator[Places]:
        from kavka.pipeline.files.errors import LogEndsError, OffsetsGoneError, PartitionMissingError, TopicChangedError
        from kavka.pipeline.files.partition_reader import read

        wanted = ["offset", "timestamp"]
        try:
            for batch in read(self._directories, topic, partition, start, end, "read_committed", wanted):
                times = batch["timestamp"].cast("int64").fill_null(-1)
                yield Places(batch["offset"].to_numpy(), times.to_numpy(zero_copy_only=False))
        except OffsetsGoneError:
            found = self.bounds(topic, partition)
            raise RecordsGoneError(found.start if found is not None else end) from None
        except (LogEndsError, PartitionMissingError, TopicChangedError) as error:
            raise AuditError(str(error)) from error

    def is_compacted(self, topic: str) -> bool:
        return topic in self._compacted

    def close(self) -> None:
        """Nothing is open between reads."""


def _microseconds(times_ms: Integers) -> Integers:
    """A record without a time has -1 in both; one beyond what microseconds can say the last that they can."""
    return np.where(times_ms < 0, -1, np.minimum(times_ms, _LARGEST_MS) * 1000)
