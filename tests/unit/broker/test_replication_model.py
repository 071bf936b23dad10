"""A leader among followers that fetch in any order, late, or for epochs that are over: what must hold whatever happens.

The partition's log is a model: what is tried is what the leader makes of what it hears.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kavka.broker.partitions.partition import Partition
from kavka.broker.partitions.replication import Replication
from kavka.broker.partitions.role import RECOVERED, GrantedIsr, PendingIsr, Proposer
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from kavka.storage.append_result import AppendResult
from tests.support.broker_handlers import topic_id_of

ME = 1
OTHERS = (2, 3)
LAG_MS = 100
LONG_AGO_MS = -1_000_000

other = st.sampled_from(OTHERS)


class ModelLog:
    """As much of a log as a leader needs: how long it is, and who may append."""

    def __init__(self, min_isr: int) -> None:
        self.config = SimpleNamespace(min_insync_replicas=min_isr)
        self.log_end_offset = 0
        self.high_watermark = 0
        self.leading_epoch = -1
        self.alone = False

    def begin_leader_epoch(self, epoch: int) -> int:
        assert epoch > self.leading_epoch
        self.leading_epoch = epoch
        return self.log_end_offset

    def follow_leader_epoch(self, epoch: int) -> None:
        self.leading_epoch, self.alone = -1, False

    def stand_alone(self, alone: bool) -> None:
        self.alone = alone

    def advance_alone(self) -> None:
        if self.alone:
            self.high_watermark = self.log_end_offset

    def advance_high_watermark(self, offset: int) -> bool:
        assert self.high_watermark < offset <= self.log_end_offset
        self.high_watermark = offset
        return True

    def append_as_leader(self, records: object, *, leader_epoch: int, **more: object) -> AppendResult:
        if leader_epoch != self.leading_epoch:
            raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.log_end_offset += 1
        return AppendResult(self.log_end_offset - 1, self.log_end_offset - 1, -1, 0, False)


class Leading(RuleBasedStateMachine):
    @initialize(min_isr=st.sampled_from([1, 2, 3]), isr=st.sampled_from([(ME,), (ME, 2), (ME, 2, 3)]))
    def begin(self, min_isr: int, isr: tuple[int, ...]) -> None:
        self.now_ms = 0
        self.ineligible: set[int] = set()
        self.asked: list[PendingIsr] = []
        self.has: dict[int, int] = {}
        """How much each follower is known to have by fetches that were right."""
        self.had_all_ms: dict[int, int] = {}
        """When a follower's fetch last came from the log's end."""
        self.log: Any = ModelLog(min_isr)
        self.leader_epoch, self.partition_epoch = 0, 0
        self.replication = Replication(
            monotonic_ms=lambda: self.now_ms,
            lag_time_max_ms=LAG_MS,
            is_eligible=lambda broker_id, broker_epoch: broker_id not in self.ineligible,
            propose=self._propose,
        )
        self.partition = Partition(ME, "visits", 0, topic_id_of("visits"), self.replication)
        self.committed_isr = isr
        self._order(isr, new_epoch=True)
        self.known_watermark = 0

    def _propose(self, partition: Proposer, pending: PendingIsr) -> None:
        role, end_offset = self.partition.role, self.log.log_end_offset
        assert role.pending is pending
        if pending.is_expansion:
            (joining,) = set(pending.isr) - set(role.isr)
            assert joining not in self.ineligible
            assert self.has[joining] >= role.epoch_start_offset
            assert self.has[joining] >= self.log.high_watermark
        else:
            leaving = set(role.isr) - set(pending.isr)
            assert leaving
            assert ME in pending.isr
            for each in leaving:
                assert self.has.get(each, -1) < end_offset
                assert self.now_ms - self.had_all_ms[each] > LAG_MS
        self.asked.append(pending)

    def _order(self, isr: tuple[int, ...], *, new_epoch: bool) -> None:
        self.partition_epoch += 1
        if new_epoch:
            self.leader_epoch += 1
            self.had_all_ms = {each: self.now_ms if each in isr else LONG_AGO_MS for each in OTHERS}
        self.committed_isr = isr
        state = LeaderAndIsrPartitionState(
            partition_index=0,
            controller_epoch=1,
            leader=ME,
            leader_epoch=self.leader_epoch,
            isr=list(isr),
            partition_epoch=self.partition_epoch,
            replicas=[ME, *OTHERS],
            leader_recovery_state=RECOVERED,
        )
        self.partition.make_leader(state, 1, self.log)

    @rule()
    def append(self) -> None:
        self.partition.append(memoryview(b""), 1, 9, 0)

    @rule()
    def append_to_all(self) -> None:
        if len(self.partition.role.isr) >= self.log.config.min_insync_replicas:
            self.partition.append(memoryview(b""), -1, 9, 0)
            return
        with pytest.raises(BrokerError) as refused:
            self.partition.append(memoryview(b""), -1, 9, 0)
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS

    @rule(replica=other, behind=st.integers(0, 3), grown=st.integers(0, 2))
    def fetch(self, replica: int, behind: int, grown: int) -> None:
        """Maybe records came between the read and the count."""
        end_offset = self.log.log_end_offset
        offset = max(0, end_offset - behind)
        for _ in range(grown):
            self.append()
        self.has[replica] = offset
        if offset == end_offset:
            self.had_all_ms[replica] = self.now_ms
        self.partition.follower_fetched(replica, offset, leader_epoch=self.leader_epoch, leader_end_offset=end_offset)

    @rule(replica=other, epochs_ago=st.integers(1, 2))
    def late_fetch(self, replica: int, epochs_ago: int) -> None:
        before = self.partition.role
        self.partition.follower_fetched(
            replica,
            self.log.log_end_offset,
            leader_epoch=self.leader_epoch - epochs_ago,
            leader_end_offset=self.log.log_end_offset,
        )
        assert self.partition.role is before

    @rule(elapsed_ms=st.sampled_from([1, LAG_MS // 2, LAG_MS + 1]))
    def pass_time(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms

    @rule()
    def shrink(self) -> None:
        self.partition.shrink_isr()

    @rule(replica=other)
    def toggle_eligibility(self, replica: int) -> None:
        self.ineligible ^= {replica}

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def grant(self, data: st.DataObject) -> None:
        pending = data.draw(st.sampled_from(self.asked))
        stands = pending.partition_epoch == self.partition_epoch and pending.leader_epoch == self.leader_epoch
        if stands:
            self.partition_epoch += 1
            self.committed_isr = pending.isr
        granted = GrantedIsr(self.leader_epoch, self.committed_isr, self.partition_epoch, RECOVERED)
        self.partition.isr_answered(pending, granted)
        self.asked.remove(pending)

    @precondition(lambda self: self.asked)
    @rule(
        data=st.data(),
        error=st.sampled_from(
            [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.UNKNOWN_SERVER_ERROR]
        ),
    )
    def refuse(self, data: st.DataObject, error: ErrorCode) -> None:
        pending, before = data.draw(st.sampled_from(self.asked)), self.partition.role
        if not self.partition.isr_answered(pending, error):
            self.asked.remove(pending)
        assert before.pending is pending or self.partition.role is before

    @rule(isr=st.sampled_from([(ME,), (ME, 2), (ME, 3), (ME, 2, 3)]))
    def elect_again(self, isr: tuple[int, ...]) -> None:
        """Only who is in sync may be in the next ISR: an ISR shrinks by elections, and grows by asking."""
        self._order(tuple(each for each in isr if each in self.committed_isr), new_epoch=True)

    @rule()
    def repeat_order(self) -> None:
        self._order(self.committed_isr, new_epoch=False)

    @invariant()
    def what_is_committed_is_everywhere(self) -> None:
        role, high_watermark = self.partition.role, self.log.high_watermark
        assert high_watermark >= self.known_watermark
        assert role.isr == self.committed_isr or role.pending is not None
        assert set(role.maximal_isr) >= set(role.isr)
        if high_watermark > self.known_watermark:
            assert all(self.has.get(each, -1) >= high_watermark for each in role.isr if each != ME)
            assert len(role.isr) >= self.log.config.min_insync_replicas
        self.known_watermark = high_watermark


TestLeading = Leading.TestCase
TestLeading.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
