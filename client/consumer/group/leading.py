"""Leading a classic group: sharing out, and looking whether that still fits the topics there are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from kavka.client.api_errors import InconsistentGroupProtocolError, InvalidRequestError
from kavka.client.cluster import Cluster
from kavka.client.consumer.group.assignors.assignor import Assignor, MemberSubscription
from kavka.client.consumer.group.blobs import assignment_blob, subscription_from
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.port import GroupHost
from kavka.client.consumer.group.steps import Lead
from kavka.client.consumer.group.subscription import Subscription
from kavka.client.kafka_error import KafkaError
from kavka.client.metadata import Metadata
from kavka.protocol.errors import DecodeError


class Leading:
    """The group's topics as they were when they were shared out. Threads: the polling one's."""

    def __init__(
        self, settings: GroupSettings, metadata: Metadata, subscription: Subscription, host: GroupHost
    ) -> None:
        self._settings: Final = settings
        self._assignors: Final[Sequence[Assignor]] = settings.assignors
        self._metadata: Final = metadata
        self._subscription: Final = subscription
        self._host: Final = host
        self._shape: Mapping[str, Any] | None = None
        self._looked_at: Cluster | None = None

    def lead(self, step: Lead) -> Generator[Callable[[], bool], None, object]:
        """A generator: the blobs for all members, or the KafkaError that prevents it."""
        try:
            members = {each.member_id: subscription_from(each.metadata, each.instance_id) for each in step.members}
        except DecodeError as error:
            return InconsistentGroupProtocolError(f"a member's subscription cannot be read: {error}")
        assignor = next((each for each in self._assignors if each.name == step.protocol), None)
        if assignor is None:
            return InconsistentGroupProtocolError(f"the group chose {step.protocol!r}, which this member has not")
        topics = self._topics(members)
        version = -1 if self._subscription.is_by_pattern else self._metadata.want_only(topics)
        deadline_ms = self._host.now_ms() + self._settings.request_timeout_ms
        yield lambda: self._metadata.cluster.version > version or self._host.now_ms() >= deadline_ms
        cluster = self._metadata.cluster
        self._shape = self._shape_of(cluster, topics)
        self._looked_at = cluster
        if step.is_done:
            return {}
        try:
            given = assignor.assign(cluster, members)
            return {member: assignment_blob(given[member]) for member in members if member in given}
        except Exception as error:  # noqa: BLE001  # the user's assignor: poll raises it
            failure: KafkaError = InvalidRequestError(f"the assignor {assignor.name!r} failed: {error!r}")
            failure.__cause__ = error
            return failure

    def has_changed(self) -> bool:
        """Whether the group's topics have other partitions, or replicas in other racks, than when they were shared."""
        cluster = self._metadata.cluster
        if self._shape is None or cluster is self._looked_at:
            return False
        self._looked_at = cluster
        return self._shape_of(cluster, self._shape) != self._shape

    def stop(self) -> None:
        """Another one may lead."""
        if self._shape is not None and not self._subscription.is_by_pattern:
            self._metadata.want_only(self._subscription.topics)
        self._shape = None

    def _topics(self, members: Mapping[str, MemberSubscription]) -> set[str]:
        return {topic for each in members.values() for topic in each.topics}

    def _shape_of(self, cluster: Cluster, topics: Iterable[str]) -> dict[str, Any]:
        """For each topic what assignments go by: how many partitions it has, and in which racks they are.

        Racks count where this member has one, as in Kafka's client: they come and go with the brokers, and a group that
        does not care for them is not to rebalance whenever one of these restarts.
        """
        racks = {number: node.rack for number, node in cluster.nodes.items()}
        shape: dict[str, Any] = {}
        for topic in topics:
            info = cluster.topics.get(topic)
            partitions = info.partitions if info is not None else {}
            shape[topic] = len(partitions)
            if self._settings.client_rack:
                shape[topic] = [
                    sorted({racks.get(replica) or "" for replica in each.replicas})
                    for _, each in sorted(partitions.items())
                ]
        return shape
