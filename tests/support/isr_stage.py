"""One partition of broker 1 with a real log, a clock that tests move, and a controller that they answer for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.partition_waits import committed
from kavka.broker.partitions.replication import Replication
from kavka.broker.partitions.role import RECOVERED, GrantedIsr, PendingIsr, Proposer
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.storage.partition_log import PartitionLog
from tests.support.broker_handlers import topic_id_of
from tests.support.partition_logs import batch_of, open_log

ME, OTHER, THIRD = 1, 2, 3
LAG_MS = 1000


class Hosted:
    """The partition, and what it asked for, oldest first."""

    def __init__(self, directory: Path, **overrides: Any) -> None:
        self.now_ms = 5
        self.ineligible: set[int] = set()
        self.asked: list[PendingIsr] = []
        self.counted: Counter[str] = Counter()
        self.replication = Replication(
            monotonic_ms=lambda: self.now_ms,
            lag_time_max_ms=LAG_MS,
            is_eligible=lambda broker_id, broker_epoch: broker_id not in self.ineligible,
            propose=self._propose,
            count=lambda name: self.counted.update([name]),
        )
        self.log: PartitionLog = open_log(directory, **overrides)
        self.partition = Partition(ME, "visits", 0, topic_id_of("visits"), self.replication)

    def _propose(self, partition: Proposer, pending: PendingIsr) -> None:
        assert partition is self.partition
        self.asked.append(pending)

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    def state(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...],
        replicas: tuple[int, ...] | None = None,
        partition_epoch: int = 0,
        recovery_state: int = RECOVERED,
    ) -> LeaderAndIsrPartitionState:
        return LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=list(isr),
            partition_epoch=partition_epoch,
            replicas=list(replicas or isr),
            leader_recovery_state=recovery_state,
        )

    def lead(self, *isr: int, epoch: int = 0, replicas: tuple[int, ...] | None = None, **more: Any) -> bool:
        return self.partition.make_leader(self.state(ME, epoch, isr, replicas, **more), 1, self.log)

    def follow(self, epoch: int, leader: int = OTHER, **more: Any) -> bool:
        return self.partition.make_follower(self.state(leader, epoch, (leader, ME), **more), 1, self.log)

    def append(self, acks: int = -1, version: int = 9) -> int:
        """Two records; their first offset."""
        return self.partition.append(memoryview(batch_of(b"a", b"b")), acks, version, 1_700_000_000_000).first_offset

    def fetched(self, replica_id: int, offset: int, **more: Any) -> None:
        """A follower's fetch at the log as it is now."""
        where = {"leader_epoch": self.partition.role.leader_epoch, "leader_end_offset": self.log.log_end_offset}
        if self.partition.follower_fetched(replica_id, offset, **{**where, **more}):
            committed((self.partition,))

    def grant(self, pending: PendingIsr, **more: Any) -> bool:
        """The controller agrees."""
        granted = GrantedIsr(pending.leader_epoch, pending.isr, pending.partition_epoch + 1, RECOVERED)
        return self.partition.isr_answered(pending, granted._replace(**more))
