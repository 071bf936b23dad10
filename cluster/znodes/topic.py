"""`/brokers/topics/T` and below: who holds which partition, and who leads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kavka.cluster.znodes.json_data import INT32_MAX, INT64_MAX, Fields, ZnodeError, encode_json
from kavka.protocol.schema import text_to_uuid, uuid_to_text

TOPICS_PATH: Final = "/brokers/topics"
NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""In UpdateMetadata and LeaderAndIsr: the topic is on its way out."""
RECOVERED: Final = 0
RECOVERING: Final = 1
NO_BROKER_EPOCH: Final = -1

_NO_ID: Final = bytes(16)
"""What messages have in place of a topic's id where there is none."""

_STATE_AS_WRITTEN: Final = re.compile(
    rb'\{"controller_epoch":(\d{1,9}),"leader":(-1|\d{1,9}),"version":1,"leader_epoch":(\d{1,9}),'
    rb'"isr":\[(\d{1,9}(?:,\d{1,9})*)\](?:,"leader_broker_epoch":(\d{1,18}))?(?:,"latest_broker_epoch":(\d{1,18}))?\}'
)
"""The form that brokers mostly write, read without a JSON parser: a start reads one for each partition."""


class PartitionAssignment(NamedTuple):
    """The replicas of one partition, and which of them come and go while it is reassigned (KIP-455).

    `replicas` holds all of them, those that stay in the end first.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before: what a cancellation goes back to, but for the order where the two overlap."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas to come, the preferred leader first."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    def towards(self, target: Sequence[int]) -> PartitionAssignment:
        """The way from the replicas before to `target`, whatever way was begun."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return PartitionAssignment(
            replicas,
            adding=tuple(broker for broker in replicas if broker not in origin),
            removing=tuple(broker for broker in replicas if broker not in target),
        )


class TopicAssignment(NamedTuple):
    """`/brokers/topics/T`: replicas of each partition, the first of them preferred as leader.

    `adding` and `removing` name the replicas on the move while partitions are reassigned (KIP-455). Written by 0.8 and
    by brokers before 2.4 without them and without `topic_id` (None here).
    """

    replicas: Mapping[int, tuple[int, ...]]
    topic_id: bytes | None
    adding: Mapping[int, tuple[int, ...]] = {}
    removing: Mapping[int, tuple[int, ...]] = {}

    def of(self, partition: int) -> PartitionAssignment:
        """Raises KeyError for a partition that is not there."""
        return PartitionAssignment(
            self.replicas[partition], self.adding.get(partition, ()), self.removing.get(partition, ())
        )

    def moved(self, changes: Mapping[int, PartitionAssignment]) -> TopicAssignment:
        """With these partitions' replicas in place of those that they had."""
        return self._replace(
            replicas={**self.replicas, **{partition: each.replicas for partition, each in changes.items()}},
            adding=_changed(self.adding, {partition: each.adding for partition, each in changes.items()}),
            removing=_changed(self.removing, {partition: each.removing for partition, each in changes.items()}),
        )

    @staticmethod
    def path(topic: str) -> str:
        return f"{TOPICS_PATH}/{topic}"

    @staticmethod
    def partitions_path(topic: str) -> str:
        return f"{TOPICS_PATH}/{topic}/partitions"

    def encode(self) -> bytes:
        fields: dict[str, object] = {"partitions": _by_text(self.replicas)}
        if self.topic_id is not None:
            fields["topic_id"] = uuid_to_text(self.topic_id)
        fields["adding_replicas"] = _by_text(self.adding)
        fields["removing_replicas"] = _by_text(self.removing)
        fields["version"] = 3
        return encode_json(fields)

    @staticmethod
    def decode(topic: str, data: bytes) -> TopicAssignment:
        fields = Fields.parse(TopicAssignment.path(topic), data)
        fields.integer("version", low=1)
        replicas = fields.replicas_by_partition("partitions")
        if any(not brokers for brokers in replicas.values()):
            raise ZnodeError(fields.path, "a partition without replicas")
        topic_id = None
        text = fields.optional_text("topic_id")
        if text is not None:
            try:
                topic_id = text_to_uuid(text)
            except ValueError:
                raise ZnodeError(fields.path, f"no topic id: {text[:40]!r}") from None
        adding = fields.replicas_by_partition("adding_replicas")
        removing = fields.replicas_by_partition("removing_replicas")
        if adding or removing:
            moving = {each: _on_the_way(replicas[each], adding, removing, each) for each in replicas}
            adding = _changed({}, {partition: each.adding for partition, each in moving.items()})
            removing = _changed({}, {partition: each.removing for partition, each in moving.items()})
        return TopicAssignment(replicas, topic_id if topic_id != _NO_ID else None, adding, removing)


class PartitionState(NamedTuple):
    """`/brokers/topics/T/partitions/P/state`: the leader, its epoch, and the replicas that are in sync.

    `version` is the node's version, which every write names (KIP-497 calls it partition epoch); -1 before the first.
    `recovery` is 1 from an unclean election until its leader says that it has recovered (KIP-704); messages call it the
    leader recovery state. The node has it only then, so that older brokers read what they always did.
    `leader_broker_epoch` says which run of its broker was made the leader in this epoch, by the czxid of that run's
    registration; -1 where nobody follows, and where Kafka's brokers have written, who do not know the field.
    `latest_broker_epoch` is the highest epoch of a broker that whoever wrote the ISR knew to be alive: who is
    registered with a later one may have been away since it was in sync. -1 as above; the node has it only where an ISR
    has others than its leader.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    version: int = -1
    recovery: int = RECOVERED
    leader_broker_epoch: int = NO_BROKER_EPOCH
    latest_broker_epoch: int = NO_BROKER_EPOCH

    @staticmethod
    def path(topic: str, partition: int) -> str:
        return f"{TOPICS_PATH}/{topic}/partitions/{partition}/state"

    def encode(self) -> bytes:
        fields: dict[str, object] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
            "leader_epoch": self.leader_epoch,
            "isr": self.isr,
        }
        if self.recovery != RECOVERED:
            fields["leader_recovery_state"] = self.recovery
        if self.leader_broker_epoch != NO_BROKER_EPOCH:
            fields["leader_broker_epoch"] = self.leader_broker_epoch
        if self.latest_broker_epoch != NO_BROKER_EPOCH:
            fields["latest_broker_epoch"] = self.latest_broker_epoch
        return encode_json(fields)

    @staticmethod
    def decode(topic: str, partition: int, data: bytes, version: int) -> PartitionState:
        written = _STATE_AS_WRITTEN.fullmatch(data)
        if written is not None:
            controller_epoch, leader, leader_epoch, brokers, broker_epoch, latest = written.groups()
            isr = tuple(map(int, brokers.split(b",")))
            if len(isr) == 1 or len(set(isr)) == len(isr):
                return PartitionState(
                    leader=int(leader),
                    leader_epoch=int(leader_epoch),
                    isr=isr,
                    controller_epoch=int(controller_epoch),
                    version=version,
                    leader_broker_epoch=NO_BROKER_EPOCH if broker_epoch is None else int(broker_epoch),
                    latest_broker_epoch=NO_BROKER_EPOCH if latest is None else int(latest),
                )
        fields = Fields.parse(PartitionState.path(topic, partition), data)
        return PartitionState(
            leader=fields.integer("leader", low=NO_LEADER),
            # There is another one after it, which has to fit into messages, too.
            leader_epoch=fields.integer("leader_epoch", high=INT32_MAX - 1),
            isr=fields.integers("isr"),
            controller_epoch=fields.integer("controller_epoch", low=0),
            version=version,
            recovery=fields.integer("leader_recovery_state", high=RECOVERING, default=RECOVERED),
            leader_broker_epoch=fields.integer(
                "leader_broker_epoch", low=NO_BROKER_EPOCH, high=INT64_MAX, default=NO_BROKER_EPOCH
            ),
            latest_broker_epoch=fields.integer(
                "latest_broker_epoch", low=NO_BROKER_EPOCH, high=INT64_MAX, default=NO_BROKER_EPOCH
            ),
        )


class TopicDeletion:
    """`/admin/delete_topics/T`: somebody wants the topic gone. No data."""

    PARENT: Final = "/admin/delete_topics"

    @staticmethod
    def path(topic: str) -> str:
        return f"{TopicDeletion.PARENT}/{topic}"


def _on_the_way(
    replicas: tuple[int, ...],
    adding: Mapping[int, tuple[int, ...]],
    removing: Mapping[int, tuple[int, ...]],
    partition: int,
) -> PartitionAssignment:
    """As far as it can be: only a replica comes or goes, and neither way leads to none."""
    assignment = PartitionAssignment(
        replicas,
        tuple(broker for broker in adding.get(partition, ()) if broker in replicas),
        tuple(broker for broker in removing.get(partition, ()) if broker in replicas),
    )
    return assignment if assignment.origin and assignment.target else PartitionAssignment(replicas)


def _changed(
    before: Mapping[int, tuple[int, ...]], changes: Mapping[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """Partitions that have none on the move are not named."""
    return {partition: brokers for partition, brokers in {**before, **changes}.items() if brokers}


def _by_text(replicas: Mapping[int, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {str(partition): replicas[partition] for partition in sorted(replicas)}
