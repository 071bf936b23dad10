"""Topics: create, delete, describe, list; more partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kavka.client.admin.areas.area import Area, each_of, settled
from kavka.client.admin.areas.later import Later
from kavka.client.admin.types.acls import authorized_operations
from kavka.client.admin.types.topics import NewPartitions, NewTopic, TopicDescription
from kavka.client.api_errors import (
    KafkaError,
    KafkaTimeoutError,
    UnknownServerError,
    UnsupportedVersionError,
    error_of,
)
from kavka.protocol.schema import Uuid

if TYPE_CHECKING:
    from kavka.client.admin.operations import topics as operations
    from kavka.client.admin.types.topics import TopicListing, TopicMetadataAndConfig, TopicPartitionInfo
    from kavka.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
else:
    operations = Later("kavka.client.admin.operations.topics")


class TopicsArea(Area):
    """Threads: any."""

    def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        retry_when_throttled: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[str, TopicMetadataAndConfig]:
        """Create topics, by name; with `validate_only` only say whether they could be.

            admin.create_topics([NewTopic("payments", num_partitions=6)])

        Raises TopicExistsError, InvalidReplicationFactorError, PolicyViolationError, ...; DisconnectedError when it is
        not known whether it was done, as it is not asked twice. Asked of the controller.
        """
        wanted: dict[str, NewTopic] = {}
        for topic in each_of(topics):
            if not isinstance(topic, NewTopic):
                raise TypeError(f"a NewTopic is expected, not {topic!r}")
            if wanted.setdefault(topic.name, topic) is not topic:
                raise ValueError(f"topic {topic.name!r} is asked for twice")
        operation = operations.create_topics(wanted, validate_only, retry_when_throttled)
        return self._run(operation, self._deadline(timeout_ms))

    def delete_topics(
        self,
        topics: Iterable[str | Uuid],
        *,
        retry_when_throttled: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[str | Uuid, None]:
        """Delete topics, each by its name or by the sixteen bytes of its id (KIP-516). Asked of the controller.

        When the connection ends it is asked again, and what is gone then counts as deleted: by an id that can be no
        other topic than the one that is meant. Raises UnknownTopicOrPartitionError, UnknownTopicIdError,
        TopicDeletionDisabledError, ...
        """
        operation = operations.delete_topics(each_of(topics), retry_when_throttled)
        return self._run(operation, self._deadline(timeout_ms))

    def create_partitions(
        self,
        totals: Mapping[str, int | NewPartitions],
        *,
        validate_only: bool = False,
        retry_when_throttled: bool = True,
        timeout_ms: float | None = None,
    ) -> dict[str, None]:
        """Give topics more partitions: how many each is to have in all (KIP-195). Asked of the controller.

        Raises InvalidPartitionsError, ...; DisconnectedError when it is not known whether it was done.
        """
        wanted = {
            name: total if isinstance(total, NewPartitions) else NewPartitions(total) for name, total in totals.items()
        }
        operation = operations.create_partitions(wanted, validate_only, retry_when_throttled)
        return self._run(operation, self._deadline(timeout_ms))

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: float | None = None
    ) -> dict[str, TopicListing]:
        """The topics that the caller may see, by name."""
        topics = self._one(operations.list_topics(), self._deadline(timeout_ms))
        return {name: topic for name, topic in topics.items() if include_internal or not topic.is_internal}

    def describe_topics(
        self,
        topics: Iterable[str | Uuid],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str | Uuid, TopicDescription]:
        """Topics and their partitions, asked for by name or by the sixteen bytes of their ids.

        Brokers from 3.8 on are asked in pages of 2000 partitions (KIP-966); others, and for ids, by Metadata.
        Operations are those that the caller may do. Raises UnknownTopicOrPartitionError, ...
        """
        deadline_ms = self._deadline(timeout_ms)
        asked = list(dict.fromkeys(each_of(topics)))
        results: dict[str | Uuid, TopicDescription] = {}
        errors: dict[str | Uuid, KafkaError] = {}
        by_metadata: list[str | Uuid] = [topic for topic in asked if not isinstance(topic, str)]
        names = [topic for topic in asked if isinstance(topic, str)]
        if names:
            try:
                pages = self._pages(names, deadline_ms)
            except UnsupportedVersionError:
                by_metadata = asked
            else:
                for name in names:
                    found = pages[name].described(include_authorized_operations)
                    if isinstance(found, KafkaError):
                        errors[name] = found
                    else:
                        results[name] = found
        operation = operations.describe_by_metadata(by_metadata, include_authorized_operations)
        outcomes = self._outcomes(operation, deadline_ms)
        return settled(operation.name, {**results, **outcomes.results}, {**errors, **outcomes.errors})

    def _pages(self, names: Sequence[str], deadline_ms: float) -> dict[str, _PagedTopic]:
        """Page after page, until all partitions are there. What is not asked for is left aside."""
        found = {name: _PagedTopic(name) for name in names}
        cursor: tuple[str, int] | None = None
        left = sorted(found)
        while left:
            page = self._one(operations.describe_page(left, cursor), deadline_ms)
            for row in page.topics:
                if row.name in found:
                    found[row.name].add(row)
            goes_on = page.cursor
            if goes_on is None:
                break
            if goes_on[0] not in found or (cursor is not None and goes_on <= cursor):
                raise UnknownServerError(f"the broker's next page of topics begins at {goes_on}, after {cursor}")
            if self._ports.now_ms() >= deadline_ms:
                raise KafkaTimeoutError("describing topics: not all pages came in time")
            cursor = goes_on
            left = [name for name in left if name >= goes_on[0]]
        return found


class _PagedTopic:
    """A topic, from as many pages as it takes."""

    __slots__ = ("_name", "_partitions", "_row")

    def __init__(self, name: str) -> None:
        self._name = name
        self._row: DescribeTopicPartitionsResponseTopic | None = None
        self._partitions: dict[int, TopicPartitionInfo] = {}

    def add(self, row: DescribeTopicPartitionsResponseTopic) -> None:
        """What a page has of it."""
        if self._row is None:
            self._row = row
        for each in row.partitions:
            self._partitions.setdefault(each.partition_index, operations.paged_partition(each))

    def described(self, with_operations: bool) -> TopicDescription | KafkaError:
        """The topic; or why there is none."""
        row = self._row
        if row is None:
            return UnknownServerError(f"the broker's answer leaves topic {self._name!r} out")
        if row.error_code:
            return error_of(row.error_code)
        return TopicDescription(
            self._name,
            row.topic_id,
            row.is_internal,
            tuple(self._partitions[index] for index in sorted(self._partitions)),
            authorized_operations(row.topic_authorized_operations) if with_operations else None,
        )
