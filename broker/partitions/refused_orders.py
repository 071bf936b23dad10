"""The controller's orders that a disk refused for a reason that passes: what is to be tried again.

Without descriptors or room a log can't be made, nor its folder renamed. The controller hears of it as of a directory
that failed, and gives the replica up. Kafka's brokers take the directory offline then, and only a restart brings it
back; here it stays online, and the broker makes up for the order once the disk lets it. Then it asks the controller
to look at its replicas again (`disk_notices.py`).
"""

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.protocol.schema import ZERO_UUID

RETRY_MS: Final = 5_000
"""How long after a refusal it is tried again."""

TopicPartition = tuple[str, int]

log = logging.getLogger(__name__)


class WantedLog(NamedTuple):
    """A log that the controller wants here.

    `is_new`: nobody has one, for the partition was made just now. `is_lost`: one was here, and went with its disk.
    """

    topic_id: bytes
    is_new: bool
    is_lost: bool = False


def wanted_log(topic_id: bytes, state: LeaderAndIsrPartitionState, broker_id: int, *, is_lost: bool) -> WantedLog:
    """The log that an order asks this broker for.

    Who came into sync while it was added had a log, whatever the controller still calls it. If that lies in a directory
    that is away, another one must not be made: it would lead without a record, and outdo the former one for good.
    """
    is_in_sync = broker_id in state.adding_replicas and broker_id in state.isr
    return WantedLog(topic_id, state.is_new and not is_in_sync, is_lost)


class RefusedOrders:
    """What the disks owe the controller. The latest order counts: who is to be hosted is not to be deleted any more.

    Bounded by the partitions that are assigned to this broker. Threads: guarded by `ReplicaManager._lock`; whether
    there are any may be read by all.
    """

    __slots__ = ("creations", "deletions", "leaderships", "namesakes")

    def __init__(self) -> None:
        self.creations: dict[TopicPartition, WantedLog] = {}
        self.deletions: dict[TopicPartition, None] = {}
        self.leaderships: set[TopicPartition] = set()
        """Of replicas that may lack records. Not tried again, but the controller is to look who leads, if anybody."""
        self.namesakes: dict[TopicPartition, bytes] = {}
        """Of these topics, by their ids, where a former one of the name is still here: nobody told this broker of its
        end, or that its replica went elsewhere."""

    def __len__(self) -> int:
        return len(self.creations) + len(self.deletions) + len(self.leaderships) + len(self.namesakes)

    def refuse_creation(self, key: TopicPartition, wanted: WantedLog) -> None:
        self._announce()
        self.deletions.pop(key, None)
        self.creations[key] = wanted

    def refuse_deletion(self, key: TopicPartition) -> None:
        self._announce()
        self.creations.pop(key, None)
        self.deletions[key] = None

    def refuse_namesake(self, key: TopicPartition, topic_id: bytes) -> None:
        if topic_id != ZERO_UUID:
            self.namesakes[key] = topic_id

    def namesakes_of(self, ids: Mapping[str, bytes]) -> dict[TopicPartition, bytes]:
        """What is wanted here of topics that have these ids, and has a former one of that name in its way."""
        return {key: topic_id for key, topic_id in self.namesakes.items() if ids.get(key[0]) == topic_id}

    def forget(self, key: TopicPartition) -> None:
        """It is done, or not wanted any more; harmless if it was not owed."""
        was_owed = len(self)
        self.creations.pop(key, None)
        self.deletions.pop(key, None)
        self.namesakes.pop(key, None)
        if was_owed and not len(self):
            log.info("nothing is left of what the disks refused the controller")

    def _announce(self) -> None:
        if not len(self):
            log.warning("a disk refused an order of the controller: such are tried again every %d ms", RETRY_MS)
