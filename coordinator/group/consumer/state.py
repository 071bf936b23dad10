"""What the log says of a consumer group, and how each record changes it.

Live and while loading alike, `apply` is the only way in. Records may come in any order in which a compacted log can
hold them, so no record relies on one before it.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from kavka.coordinator.group.consumer import records
from kavka.coordinator.group.consumer.assignment import (
    NO_EPOCHS,
    NOTHING_ASSIGNED,
    Assignment,
    assignment_of,
)
from kavka.coordinator.group.consumer.member import LEAVING, Member, MemberState
from kavka.coordinator.group.consumer.topics import TopicInfo
from kavka.coordinator.runtime.result import CoordinatorRecord
from kavka.protocol.internal import group_records as stored
from kavka.protocol.schema import Record


class ResolvedRegex(NamedTuple):
    """What a regular expression stood for when it was last looked at."""

    topics: frozenset[str]
    version: int
    """Of the cluster's topics, as this broker counted them."""
    timestamp_ms: int


class LoggedState:
    """Epochs, members, targets, and what follows from them. Owned by its shard, guarded by the shard's lock.

    `members`, `targets` and `resolved` are as the records say; to be changed by `apply` alone.
    """

    __slots__ = (
        "_names",
        "_owners",
        "classic_members",
        "epoch",
        "group_id",
        "members",
        "regexes",
        "resolved",
        "static_members",
        "target_epoch",
        "targets",
        "topics",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id: Final = group_id
        self.epoch = 0
        """Grows when subscriptions or subscribed topics change."""
        self.target_epoch = 0
        """The group epoch that the targets were computed for."""
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Assignment] = {}
        self.topics: dict[str, TopicInfo] = {}
        """The subscribed topics as they were when `epoch` was made."""
        self.resolved: dict[str, ResolvedRegex] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.classic_members = 0
        """How many members speak the classic protocol."""
        self.regexes: dict[str, int] = {}
        """How many members are subscribed to each regular expression."""
        self._names: dict[str, int] = {}
        self._owners: dict[bytes, dict[int, str]] = {}

    def apply(self, key: Record, value: Any) -> None:
        """Make the state what a record of type 3 to 8 or 16 says; a tombstone of type 3 changes nothing here."""
        _APPLY[type(key)](self, key, value)

    def owner(self, topic_id: bytes, partition: int) -> str | None:
        """The member that has that partition, or has not given it up yet."""
        owners = self._owners.get(topic_id)
        return None if owners is None else owners.get(partition)

    def target(self, member_id: str) -> Assignment:
        """What a member shall have."""
        return self.targets.get(member_id, NOTHING_ASSIGNED)

    def subscribed_names(self) -> set[str]:
        """The topics that members are subscribed to, by name or by regular expression; they need not exist."""
        names = set(self._names)
        for regex in self.regexes:
            if (resolved := self.resolved.get(regex)) is not None:
                names |= resolved.topics
        return names

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member is subscribed to that topic, by name or by regular expression."""
        return topic in self._names or any(
            regex in self.resolved and topic in self.resolved[regex].topics for regex in self.regexes
        )

    def names_of(self, member: Member) -> frozenset[str]:
        """The topics that a member is subscribed to. A regular expression that is not resolved yet matches nothing."""
        resolved = self.resolved.get(member.regex) if member.regex else None
        if resolved is None or not resolved.topics:
            return member.topics
        return member.topics | resolved.topics if member.topics else resolved.topics

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that delete all of this."""
        ids = dict.fromkeys([*self.members, *self.targets])
        return records.group_tombstones(self.group_id, ids, self.resolved)

    def copy(self) -> "LoggedState":
        """One of its own, to try records on."""
        twin = LoggedState(self.group_id)
        twin.epoch, twin.target_epoch, twin.classic_members = self.epoch, self.target_epoch, self.classic_members
        twin.members, twin.targets, twin.topics = self.members.copy(), self.targets.copy(), self.topics
        twin.resolved, twin.static_members = self.resolved.copy(), self.static_members.copy()
        twin.regexes, twin._names = self.regexes.copy(), self._names.copy()
        twin._owners = {topic_id: owners.copy() for topic_id, owners in self._owners.items()}
        return twin

    def count_anew(self) -> None:
        """After loading: who owns what, from the members as they ended up."""
        self._owners.clear()
        for member in self.members.values():
            self._take(member.member_id, member.assigned)
            self._take(member.member_id, member.revoking)

    def _enter(self, member: Member) -> None:
        old = self.members.get(member.member_id)
        if old is None or old.wishes != member.wishes:
            self._forget_wishes(old)
            _count(self._names, member.topics, 1)
            if member.regex:
                _count(self.regexes, (member.regex,), 1)
            if member.classic is not None:
                self.classic_members += 1
            if member.instance_id is not None:
                self.static_members[member.instance_id] = member.member_id
        if old is None or old.assigned != member.assigned or old.revoking != member.revoking:
            if old is not None:
                self._release(old)
            self._take(member.member_id, member.assigned)
            self._take(member.member_id, member.revoking)
        self.members[member.member_id] = member

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget_wishes(member)
            self._release(member)

    def _forget_wishes(self, member: Member | None) -> None:
        if member is None:
            return
        _count(self._names, member.topics, -1)
        if member.regex:
            _count(self.regexes, (member.regex,), -1)
        if member.classic is not None:
            self.classic_members -= 1
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]

    def _take(self, member_id: str, assignment: Assignment) -> None:
        for topic_id, partitions in assignment.items():
            owners = self._owners.setdefault(topic_id, {})
            for partition in partitions:
                owners[partition] = member_id

    def _release(self, member: Member) -> None:
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                owners = self._owners.get(topic_id)
                if owners is None:
                    continue
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    del self._owners[topic_id]

    def _apply_epoch(
        self, _key: stored.ConsumerGroupMetadataKey, value: stored.ConsumerGroupMetadataValue | None
    ) -> None:
        if value is not None:
            self.epoch = value.epoch

    def _apply_topics(
        self,
        _key: stored.ConsumerGroupPartitionMetadataKey,
        value: stored.ConsumerGroupPartitionMetadataValue | None,
    ) -> None:
        self.topics = {} if value is None else records.topics_in(value)

    def _apply_member(
        self, key: stored.ConsumerGroupMemberMetadataKey, value: stored.ConsumerGroupMemberMetadataValue | None
    ) -> None:
        if value is None:
            self._remove(key.member_id)
        else:
            self._enter(records.with_metadata(self._member(key.member_id), value))

    def _apply_target_epoch(
        self,
        _key: stored.ConsumerGroupTargetAssignmentMetadataKey,
        value: stored.ConsumerGroupTargetAssignmentMetadataValue | None,
    ) -> None:
        self.target_epoch = LEAVING if value is None else value.assignment_epoch

    def _apply_target(
        self,
        key: stored.ConsumerGroupTargetAssignmentMemberKey,
        value: stored.ConsumerGroupTargetAssignmentMemberValue | None,
    ) -> None:
        if value is None:
            self.targets.pop(key.member_id, None)
        else:
            self.targets[key.member_id] = assignment_of(value.topic_partitions)

    def _apply_current(
        self,
        key: stored.ConsumerGroupCurrentMemberAssignmentKey,
        value: stored.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        if value is not None:
            self._enter(records.with_assignment(self._member(key.member_id), value))
        elif key.member_id in self.members:
            self._enter(
                self.members[key.member_id]._replace(
                    epoch=LEAVING,
                    previous_epoch=LEAVING,
                    state=MemberState.STABLE,
                    assigned=NOTHING_ASSIGNED,
                    revoking=NOTHING_ASSIGNED,
                    assignment_epochs=NO_EPOCHS,
                )
            )

    def _apply_regex(
        self,
        key: stored.ConsumerGroupRegularExpressionKey,
        value: stored.ConsumerGroupRegularExpressionValue | None,
    ) -> None:
        if value is None:
            self.resolved.pop(key.regular_expression, None)
        else:
            self.resolved[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )

    def _member(self, member_id: str) -> Member:
        return self.members.get(member_id) or Member(member_id)


def _count(counts: dict[str, int], names: Iterable[str], by: int) -> None:
    for name in names:
        count = counts.get(name, 0) + by
        if count:
            counts[name] = count
        else:
            del counts[name]


_APPLY: Final[dict[type[Record], Callable[[LoggedState, Any, Any], None]]] = {
    stored.ConsumerGroupMetadataKey: LoggedState._apply_epoch,
    stored.ConsumerGroupPartitionMetadataKey: LoggedState._apply_topics,
    stored.ConsumerGroupMemberMetadataKey: LoggedState._apply_member,
    stored.ConsumerGroupTargetAssignmentMetadataKey: LoggedState._apply_target_epoch,
    stored.ConsumerGroupTargetAssignmentMemberKey: LoggedState._apply_target,
    stored.ConsumerGroupCurrentMemberAssignmentKey: LoggedState._apply_current,
    stored.ConsumerGroupRegularExpressionKey: LoggedState._apply_regex,
}
