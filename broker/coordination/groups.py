"""The group coordinator in its broker."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kavka.broker.coordination.coordination import Coordination
from kavka.broker.coordination.internal_topics import GROUP_METADATA
from kavka.broker.coordination.workers import Workers
from kavka.cluster.features import GROUP_VERSION
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.broker.core_services import CoreServices
    from kavka.coordinator.group.shard import GroupShard
    from kavka.coordinator.ports import ShardContext, Surroundings
    from kavka.coordinator.runtime.runtime import CoordinatorRuntime


class GroupCoordination(Coordination["GroupShard"]):
    """Consumer groups: `run(group_id, operation, refused)`. See Coordination."""

    def __init__(self, services: "CoreServices", surroundings: "Callable[[], Surroundings]", workers: Workers) -> None:
        super().__init__(GROUP_METADATA, services, surroundings, workers, _group_runtime)

    def is_small(self, group_id: str) -> bool:
        """Whether what a member of that group asks costs little, and waits for no disk.

        Takes no lock: it may become larger at any time.
        """
        if self._services.logs.moves.moving:
            return False
        runtime = self.existing_runtime
        shard = None if runtime is None else runtime.shard(self.partition_of(group_id))
        group = None if shard is None else shard.groups.get(group_id)
        return group is None or group.is_small


def require_consumer_protocol(services: "CoreServices") -> None:
    """Raise BrokerError UNSUPPORTED_VERSION while groups of the consumer protocol (KIP-848) are not served.

    The settings may switch it off; and while the cluster has not agreed on it there may be brokers that know nothing of
    it, which would lose such groups when they coordinate them.
    """
    allowed = "consumer" in services.config.current.group_coordinator_rebalance_protocols
    if not allowed or services.features.level(GROUP_VERSION) < 1:
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION)


def _group_runtime(surroundings: "Surroundings") -> "CoordinatorRuntime[GroupShard]":
    from kavka.coordinator.runtime.runtime import CoordinatorRuntime
    from kavka.protocol.internal.group_records import GROUP_RECORDS

    return CoordinatorRuntime(
        "group-coordinator",
        GROUP_METADATA.name,
        GROUP_RECORDS,
        _group_shard,
        surroundings,
        load_buffer_bytes=lambda: surroundings.config().offsets_load_buffer_size,
        codec=lambda: surroundings.config().offsets_topic_compression_codec,
    )


def _group_shard(context: "ShardContext") -> "GroupShard":
    """On the loader's thread, which is where the state machines' modules are imported first."""
    from kavka.coordinator.group.shard import GroupShard

    return GroupShard(context)
