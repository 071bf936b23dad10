"""A broker's core with a group coordinator of one shard, and commits for it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from kavka.broker.coordination.coordinators import Coordinators
from kavka.broker.coordination.workers import Workers
from kavka.broker.security.acl import Authorizer
from kavka.broker.services import Services
from kavka.broker.waiting.timer import Timer
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.storage.files import Files
from tests.support.broker_core import BrokerCore
from tests.support.broker_handlers import topic_id_of
from tests.support.processes import wait_until

OFFSETS = "__consumer_offsets"
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class GroupCore(BrokerCore):
    """A broker's core with one group shard."""

    def __init__(
        self,
        directory: Path,
        *settings: str,
        inline: bool = False,
        prepares: bool = True,
        files: Files | None = None,
        execute: Callable[[Callable[[], None]], None] = lambda work: work(),
        authorizer: Callable[[Services], Authorizer] | None = None,
    ) -> None:
        super().__init__(directory, *settings, inline=inline, prepares=prepares, files=files, authorizer=authorizer)
        self.create("visits", 3)
        self.create("other")
        self.create(OFFSETS)
        self.coordinators = Coordinators(
            self.services, Timer(lambda failure: None), Workers(execute, execute, execute), lambda failure: None
        )
        self.take_over()

    def take_over(self) -> None:
        """Have the shard loaded for the leadership that its partition has now."""
        self.coordinators.leadership_changed(self.replicas.partitions[OFFSETS, 0], True)
        states = self.services.groups.runtime.states
        wait_until(lambda: states() == {0: ShardState.ACTIVE}, 60, "not loaded")

    def close(self) -> None:
        self.coordinators.stop()
        super().close()


def commit_frame(
    version: int, number: int, places: Sequence[Place], *, group: str = "g", metadata: str = "", generation: int = -1
) -> bytes:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic, partition, offset in places:
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata=metadata,
            )
        )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id="" if generation < 0 else "m",
        topics=[
            OffsetCommitRequestTopic(
                name=name if version < 10 else "",
                topic_id=topic_id_of(name) if version >= 10 else bytes(16),
                partitions=partitions,
            )
            for name, partitions in topics.items()
        ],
    )
    return encode_request_header(8, version, number, "consumer") + encode(request, version)
