"""What must hold after every step, whatever happens to a cluster."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.role import RECOVERING
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.controller import CONTROLLER_EPOCH_PATH, ControllerEpoch
from kavka.cluster.znodes.topic import NO_BROKER_EPOCH, NO_LEADER, PartitionState
from tests.simulation.broker import KEY, SimulatedBroker
from tests.simulation.cluster import Cluster
from tests.simulation.model_log import Entry, ModelLog

STATE_PATH = PartitionState.path(*KEY)


class ViolationError(AssertionError):
    """A rule was broken. The message begins with the rule's name."""

    @property
    def rule(self) -> str:
        return str(self).partition(":")[0]


class Invariants:
    """Watches a cluster from its start on.

    committed   what a leader has shown to be below its high watermark, from offset 0 on; what a producer with acks=all
                was told is in it
    lost from   where the log of a broker ended that lost records with the power, and has not caught up: Kafka's rules
                trust an ISR to have what it had (KIP-966 tells of the gap), so that nobody is to blame when it leads
                without those records, and no others; nor when others follow it meanwhile, and cut theirs
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.committed: list[Entry] = []
        self._lost_from: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        """Where each broker's log ended at the last look."""
        self._in_doubt: set[int] = set()
        """Whose logs were unproven then."""
        self._leaders: dict[int, int] = {}
        self._roles: dict[Partition, tuple[int, int]] = {}
        self._watermarks: dict[Partition, tuple[int, int]] = {}
        self._written: PartitionState | None = None
        self._written_zxid = 0
        """Of the last write of the partition's state."""
        self._controller_epoch = 0
        self._controllers: dict[int, int] = {}
        self._unclean: set[int] = set()
        self._last_loss = -1
        """The leader epoch in which records were lost that nobody promised to keep: who still leads in an earlier one,
        and has them, does not count any more."""
        self._failures: list[str] = []
        self._distrusted: str | None = None
        """Who leads though it may lack what others in sync have for sure."""
        cluster.tree.on_write = self._on_write
        cluster.on_loss = self._on_loss
        cluster.on_away = lambda broker_id: self._ends.pop(broker_id, None)

    def failed(self, what: str) -> None:
        """An exception that was caught and logged."""
        self._failures.append(what)

    def check(self) -> None:
        """Raises ViolationError."""
        if self._failures:
            raise ViolationError(f"exception: {self._failures[0]}")
        if self._distrusted is not None:
            raise ViolationError(f"was away: {self._distrusted}")
        cluster = self._cluster
        state = cluster.state()
        hosted = [(broker, partition, _log(partition)) for broker, partition in cluster.partitions()]
        self._pass_on(hosted)
        for broker, partition, log in hosted:
            self._check_role(broker, partition)
            if partition.role.is_leader:
                self._check_leader(broker, partition, log)
        for broker, partition, log in hosted:
            role = partition.role
            if state is not None and role.is_leader and role.leader_epoch == state.leader_epoch:
                self._check_has_all(broker, log, role.leader_epoch)
                self._check_isr(state, log)
                self._trust_again(broker.broker_id, log)
        self._check_acknowledged()
        for broker in cluster.alive:
            self._check_controller(broker)

    # Single rules

    def _check_role(self, broker: SimulatedBroker, partition: Partition) -> None:
        role = partition.role
        before = self._roles.get(partition)
        now = role.leader_epoch, role.partition_epoch
        if before is not None and (now[0] < before[0] or now[1] < before[1]):
            raise ViolationError(f"epoch back: broker {broker.broker_id} goes from {before} to {now}")
        self._roles[partition] = now
        if role.is_leader:
            other = self._leaders.setdefault(role.leader_epoch, broker.broker_id)
            if other != broker.broker_id:
                raise ViolationError(f"two leaders: {other} and {broker.broker_id} in epoch {role.leader_epoch}")

    def _check_leader(self, broker: SimulatedBroker, partition: Partition, log: ModelLog) -> None:
        epoch, high_watermark = partition.role.leader_epoch, log.high_watermark
        if log.is_unproven:
            raise ViolationError(f"unproven leads: {broker.broker_id} in {epoch} with {log.entries}")
        before = self._watermarks.get(partition)
        if before is not None and before[0] == epoch and high_watermark < before[1]:
            raise ViolationError(f"watermark back: {broker.broker_id} from {before[1]} to {high_watermark} in {epoch}")
        self._watermarks[partition] = epoch, high_watermark
        if epoch in self._unclean and epoch > self._last_loss:
            # Who decided so takes the loss, of what was committed under the leaders before.
            self._last_loss = epoch
            self._forget_but(log)
        if epoch < self._last_loss:
            return
        shown = log.entries[:high_watermark]
        known = self.committed[:high_watermark]
        if shown[: len(known)] != known:
            at = _common(shown, known)
            raise ViolationError(
                f"committed changed: at {at} broker {broker.broker_id} shows {shown[at]}, committed was {known[at]}"
            )
        self.committed.extend(shown[len(known) :])

    def _check_has_all(self, broker: SimulatedBroker, log: ModelLog, leader_epoch: int) -> None:
        """The leader of the time has all that was ever committed."""
        committed = self.committed
        if log.entries[: len(committed)] == committed:
            return
        at = _common(log.entries, committed)
        if self._has_lost(broker.broker_id, at):
            self._last_loss = leader_epoch
            self._forget_but(log)
            return
        raise ViolationError(
            f"committed lost: {committed[at]} at {at} is not in the log of the leader {broker.broker_id}: {log.entries}"
        )

    def _check_isr(self, state: PartitionState, log: ModelLog) -> None:
        """All that are in sync agree with the leader up to its high watermark."""
        high_watermark = log.high_watermark
        for broker_id in state.isr:
            disk = self._cluster.disks.get(broker_id)
            other = None if disk is None else disk.logs.get(KEY)
            if other is None or other.is_unproven:
                continue
            at = _common(other.entries, log.entries)
            if at < high_watermark and not self._has_lost(broker_id, at):
                raise ViolationError(
                    f"ISR differs: {broker_id} has {other.entries}, the leader {log.entries} up to {high_watermark}"
                )

    def _check_acknowledged(self) -> None:
        waiting = []
        for sent in self._cluster.sent:
            if not sent.awaited.look():
                waiting.append(sent)
            elif (
                sent.awaited.answer.error_code == 0
                and sent.awaited.leader_epoch >= self._last_loss
                and self.committed[sent.offset : sent.offset + 1] != [sent.entry]
            ):
                raise ViolationError(f"acknowledged lost: {sent.entry} at {sent.offset}")
        self._cluster.sent = waiting

    def _check_controller(self, broker: SimulatedBroker) -> None:
        if broker.metadata.went_back:
            raise ViolationError(f"metadata back: broker {broker.broker_id}")
        epoch = broker.controller.epoch
        if epoch >= 0:
            other = self._controllers.setdefault(epoch, broker.broker_id)
            if other != broker.broker_id:
                raise ViolationError(f"two controllers: {other} and {broker.broker_id} in epoch {epoch}")

    # What is seen when it happens

    def _on_write(self, path: str, data: bytes, version: int) -> None:
        if path == CONTROLLER_EPOCH_PATH:
            epoch = ControllerEpoch.decode(data)
            if epoch < self._controller_epoch:
                self._failures.append(f"controller epoch from {self._controller_epoch} to {epoch}")
            self._controller_epoch = epoch
        elif path == STATE_PATH:
            self._on_state(PartitionState.decode(*KEY, data, version))

    def _on_state(self, state: PartitionState) -> None:
        before, self._written = self._written, state
        written_zxid, self._written_zxid = self._written_zxid, self._cluster.tree.zxid
        if state.recovery == RECOVERING and state.leader != NO_LEADER:
            self._unclean.add(state.leader_epoch)
        if before is None:
            return
        if state.leader_epoch < before.leader_epoch or state.controller_epoch < before.controller_epoch:
            self._failures.append(f"epoch back in the tree: {before} {state}")
        if state.leader not in (before.leader, NO_LEADER) and state.leader_epoch <= before.leader_epoch:
            self._failures.append(f"another leader in the same epoch: {before} {state}")
        known = written_zxid if before.latest_broker_epoch == NO_BROKER_EPOCH else before.latest_broker_epoch
        if state.leader != NO_LEADER and state.leader_broker_epoch > known:
            # As its controller knows: it was registered since the last write, or unknown to whoever did that, and so
            # may have been away since it was in sync.
            stayed = [each for each in before.isr if self._has_stayed(each, known)]
            if stayed:
                self._distrusted = f"{state.leader} leads, and {stayed} were there all the time: {before} {state}"

    def _has_stayed(self, broker_id: int, known_zxid: int) -> bool:
        """Whether a broker may lead that was registered by then."""
        cluster = self._cluster
        node = cluster.tree.nodes.get(BrokerInfo.path(broker_id))
        if node is None or node.czxid > known_zxid or broker_id not in cluster.replicas():
            return False
        return broker_id not in cluster.handed_over and cluster.disks[broker_id].may_lead(KEY)

    def _on_loss(self, broker_id: int, is_power_cut: bool) -> None:
        disk = self._cluster.disks[broker_id]
        log = disk.logs.get(KEY) or disk.away.get(KEY)
        self._ends.pop(broker_id, None)
        if not is_power_cut:
            # What is made in its place is no secret to the broker.
            self._lost_from.pop(broker_id, None)
        elif log is not None and log.flushed_offset < log.log_end_offset:
            self._lose(broker_id, log.flushed_offset)

    def _lose(self, broker_id: int, offset: int) -> None:
        self._lost_from[broker_id] = min(offset, self._lost_from.get(broker_id, offset))

    def _has_lost(self, broker_id: int, offset: int) -> bool:
        """Whether the broker may lack what it had there."""
        return self._lost_from.get(broker_id, offset + 1) <= offset

    def _pass_on(self, hosted: Sequence[tuple[SimulatedBroker, Partition, ModelLog]]) -> None:
        """Who follows a leader that lost records cuts its own, or is as good as such a leader when it has caught up."""
        for broker, partition, log in hosted:
            broker_id, end_offset = broker.broker_id, log.log_end_offset
            was_in_doubt = broker_id in self._in_doubt
            (self._in_doubt.add if log.is_unproven else self._in_doubt.discard)(broker_id)
            is_cut = end_offset < self._ends.get(broker_id, 0)
            self._ends[broker_id] = end_offset
            leader_id = partition.role.leader_id
            if leader_id != broker_id and leader_id in self._lost_from:
                if is_cut:
                    self._lose(broker_id, end_offset)
                elif was_in_doubt and not log.is_unproven:
                    self._lose(broker_id, self._lost_from[leader_id])

    def _trust_again(self, leader_id: int, leaders: ModelLog) -> None:
        """Who lost records, and has by now all that the leader has: what the leader believes of it is true again.

        But not while the leader is one of them, and somebody has another log, whose high watermark may tell of more.
        """
        if leader_id in self._lost_from:
            logs = [log for disk in self._cluster.disks.values() for log in disk.all_logs]
            if any(_common(log.entries, leaders.entries) < log.log_end_offset for log in logs):
                return
            del self._lost_from[leader_id]
        for broker_id in list(self._lost_from):
            log = self._cluster.disks[broker_id].logs.get(KEY)
            if log is None or log is leaders:
                continue
            if log.entries == leaders.entries and self._cluster.brokers[broker_id].is_alive:
                del self._lost_from[broker_id]

    def _forget_but(self, log: ModelLog) -> None:
        kept = _common(self.committed, log.entries)
        del self.committed[kept:]
        self._cluster.sent = [sent for sent in self._cluster.sent if sent.offset < kept]


class CaughtErrors(logging.Handler):
    """Tells of exceptions that the product catches, logs and outlives."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.invariants: Invariants | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None and self.invariants is not None:
            self.invariants.failed(f"{record.getMessage()} {record.exc_info[1]!r}")


def _common(one: Sequence[Entry], other: Sequence[Entry]) -> int:
    """How many entries both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((offset for offset, (mine, theirs) in pairs if mine != theirs), min(len(one), len(other)))


def _log(partition: Partition) -> ModelLog:
    log = partition.log
    assert isinstance(log, ModelLog)
    return log
