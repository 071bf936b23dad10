"""A change to a consumer group in the making: records, and what the group will be when they stand.

The group itself stays as it is until the records are appended and replayed. Each step applies its records to a copy,
by the same code as replay, so a later step sees what the earlier ones did.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kavka.coordinator.group.consumer import records
from kavka.coordinator.group.consumer.assignment import NOTHING_ASSIGNED, Assignment, AssignmentEpochs, together
from kavka.coordinator.group.consumer.assignors.subscriber import Subscriber
from kavka.coordinator.group.consumer.member import JOINING, LEFT_FOR_A_WHILE, Member
from kavka.coordinator.group.consumer.reconciliation import Surroundings, next_step
from kavka.coordinator.group.consumer.state import LoggedState

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.assignors.assignor import Assignor
    from kavka.coordinator.group.consumer.topics import KnownTopics
    from kavka.coordinator.group.consumer.viewers import Viewers
    from kavka.coordinator.group.group import Viewer
    from kavka.coordinator.runtime.result import CoordinatorRecord
    from kavka.protocol.messages.consumer_group_heartbeat import TopicPartitions


LAST_EPOCH: Final = (1 << 31) - 1
"""Of a group; its record has no room for another."""


class Change:
    """Lives for one operation. Without records `after` is the group's own, and not to be changed."""

    __slots__ = (
        "_assignors",
        "_is_copy",
        "_known",
        "after",
        "before",
        "looked_at_topics",
        "records",
        "starts_over",
        "topics_version",
    )

    def __init__(self, logged: LoggedState, known: "KnownTopics", assignors: "Mapping[str, Assignor]") -> None:
        self.records: list[CoordinatorRecord] = []
        self.before: Final = logged
        self.after = logged
        """The group with the records so far."""
        self.topics_version: Final = known.version
        """Of the cluster's topics before any was read: they may change while this is being decided."""
        self.looked_at_topics = False
        """Whether the subscribed topics have been compared with the cluster's."""
        self.starts_over = False
        """Whether the epochs begin anew, so that all who were members before must join again."""
        self._is_copy = False
        self._known = known
        self._assignors = assignors

    def write(self, *records_: "CoordinatorRecord") -> None:
        """Add records of this group."""
        if not self._is_copy:
            self.after = self.before.copy()
            self._is_copy = True
        for record in records_:
            self.records.append(record)
            self.after.apply(record.key, record.value)

    def put_member(self, member: Member) -> None:
        """Have the member's metadata be that."""
        if self.after.members.get(member.member_id) != member:
            self.write(records.member_metadata(self.after.group_id, member))

    def replace_static(self, old: Member, member_id: str) -> Member:
        """Give a static member's place, with all that it has and shall have, to the one who comes under its name."""
        group_id, target = self.after.group_id, self.after.target(old.member_id)
        new = old._replace(member_id=member_id, epoch=JOINING, previous_epoch=JOINING)
        self.write(
            *records.member_tombstones(group_id, old.member_id),
            records.member_metadata(group_id, new),
            records.target_assignment(group_id, member_id, target),
            records.current_assignment(group_id, new),
        )
        return new

    def remove_members(self, member_ids: Iterable[str]) -> None:
        """Take members out, and the regular expressions that none but they were subscribed to."""
        for member_id in member_ids:
            self.write(*records.member_tombstones(self.after.group_id, member_id))
        self.drop_unused_regexes()

    def drop_unused_regexes(self) -> None:
        """Forget what regular expressions stood for to which nobody is subscribed any more."""
        for regex in [each for each in self.after.resolved if each not in self.after.regexes]:
            self.write(records.regex_tombstone(self.after.group_id, regex))

    def hide_topics(self, member: Member, viewer: "Viewer | None", viewers: "Viewers") -> bool:
        """Have a member's regular expression stand for nothing that it may not describe; whether that is less now."""
        resolved = self.after.resolved.get(member.regex) if member.regex else None
        hidden = viewers.hides(member, viewer, resolved.topics) if resolved is not None else None
        if resolved is None or not hidden:
            return False
        topics = resolved.topics - hidden
        self.write(
            records.resolved_regex(self.after.group_id, member.regex, topics, resolved.version, resolved.timestamp_ms)
        )
        return True

    def leave_for_a_while(self, member: Member) -> None:
        """Remember that a static member has gone and means to come back: it keeps what it has."""
        since = _since_joining(member.assigned)
        gone = member._replace(epoch=LEFT_FOR_A_WHILE, revoking=NOTHING_ASSIGNED, assignment_epochs=since)
        self.write(records.current_assignment(self.after.group_id, gone))

    def look_at_topics(self, *, bump: bool) -> None:
        """Compare the subscribed topics with the cluster's, and begin an epoch if they differ, or if told to."""
        self.looked_at_topics = True
        topics = self._known.existing(self.after.subscribed_names())
        if topics != self.after.topics:
            self.write(records.subscribed_topics(self.after.group_id, topics))
            bump = True
        if bump:
            epoch = self.after.epoch
            if epoch >= LAST_EPOCH:
                self._start_over()
                epoch = 0
            self.write(records.group_epoch(self.after.group_id, epoch + 1))

    def _start_over(self) -> None:
        """No epoch is left: have the group begin anew with what its members hold.

        Their own epochs are later than the group's then, so each of them is fenced, and joins again; nobody is given
        what another holds. Otherwise nothing could be written of this group any more, not even that a member has left.
        (Kafka goes on with negative epochs, for which no assignment is ever computed.)
        """
        self.starts_over = True
        group_id = self.after.group_id
        self.write(
            *(
                records.current_assignment(group_id, _joining_again(member))
                for member in self.after.members.values()
                if member.epoch != LEFT_FOR_A_WHILE
            ),
            records.target_epoch(group_id, 0),
        )

    def assign(self) -> None:
        """Compute the targets, if the group has an epoch that they are not for."""
        state = self.after
        if state.epoch <= state.target_epoch:
            return
        topics = self._known.existing(state.subscribed_names())
        ids: dict[frozenset[str], frozenset[bytes]] = {}
        subscribers = []
        for member in state.members.values():
            names = state.names_of(member)
            subscribed = ids.get(names)
            if subscribed is None:
                subscribed = ids[names] = frozenset(topics[name].topic_id for name in names if name in topics)
            target = state.target(member.member_id)
            subscribers.append(Subscriber(member.member_id, member.instance_id, subscribed, target))
        counts = {topic.topic_id: topic.partitions for topic in topics.values()}
        found = self.assignor().assign(subscribers, counts)
        old = state.targets
        self.write(
            *(
                records.target_assignment(state.group_id, member_id, target)
                for member_id, target in found.items()
                if (has := old.get(member_id)) is not target and has != target
            ),
            records.target_epoch(state.group_id, state.epoch),
        )

    def assignor(self) -> "Assignor":
        """The one that most members ask for; the default if none does."""
        return preferred_assignor(self.after.members.values(), self._assignors)

    def reconcile(
        self, member_id: str, owned: "Sequence[TopicPartitions] | None", *, subscription_changed: bool
    ) -> Member:
        """Take a member a step towards its target; gives the member as it is then."""
        state = self.after
        member = state.members[member_id]
        if member.is_reconciled_to(state.target_epoch) and not subscription_changed:
            return member
        topics = self._known.existing(state.names_of(member))
        subscribed = {topic.topic_id for topic in topics.values()}
        around = Surroundings(state.target_epoch, state.target(member_id), subscribed, state.owner)
        new = next_step(member, around, owned, subscription_changed=subscription_changed)
        if new != member:
            self.write(records.current_assignment(state.group_id, new))
        return new


def _joining_again(member: Member) -> Member:
    """The member with what it has, and without an epoch of its own."""
    since = _since_joining(together(member.assigned, member.revoking))
    return member._replace(epoch=JOINING, previous_epoch=JOINING, assignment_epochs=since)


def _since_joining(assignment: Assignment) -> AssignmentEpochs:
    return {topic_id: dict.fromkeys(partitions, JOINING) for topic_id, partitions in assignment.items()}


def preferred_assignor(members: "Iterable[Member]", assignors: "Mapping[str, Assignor]") -> "Assignor":
    """The assignor that most members ask for, the first of the setting among equals and where none does."""
    votes: dict[str, int] = dict.fromkeys(assignors, 0)
    for member in members:
        if member.server_assignor in votes:
            votes[member.server_assignor] += 1
    return assignors[max(votes, key=votes.__getitem__)]
