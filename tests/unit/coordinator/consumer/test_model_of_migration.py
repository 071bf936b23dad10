"""Groups with members of both protocols, under random orders of what they do, restarts and failed appends."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_subscription,
)
from kavka.protocol.messages.join_group import JoinGroupResponse
from tests.support.classic_consumer import assignment_for
from tests.support.classic_requests import classic_beat, classic_join, classic_leave, classic_sync
from tests.support.consumer_stage import GROUP, ConsumerStage, PlayedMember, facts
from tests.support.coordinator_stage import Asked
from tests.support.shared_partitions import shared_partitions

PARTITIONS = 5
CONSUMERS, CLASSICS = ["a", "b"], ["k", "l"]


class EagerConsumer:
    """A classic consumer that gives everything up before it joins, and assigns whole topics when it leads."""

    def __init__(self, stage: ConsumerStage) -> None:
        self.stage = stage
        self.member_id = ""
        self.generation = -1
        self.owned: set[int] = set()
        self.waits: Asked | None = None

    def join(self) -> None:
        self.owned = set()
        metadata = encode_subscription(ConsumerProtocolSubscription(topics=["t"]))
        self.waits = classic_join(self.stage, self.member_id, metadata, protocols=["range"])
        self.look()

    def look(self) -> None:
        """If JoinGroup has been answered, go on."""
        waits, self.waits = self.waits, None
        if waits is None:
            return
        if waits.waits:
            self.waits = waits
            return
        if waits.errors or waits.answer.error_code:
            code = waits.error if waits.errors else waits.answer.error_code
            if code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = waits.answer.member_id
            elif code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
            return
        self._sync(waits.answer)

    def _sync(self, joined: JoinGroupResponse) -> None:
        self.member_id, self.generation = joined.member_id, joined.generation_id
        members = [member.member_id for member in joined.members]
        assignments = [
            assignment_for(member_id, {"t": list(range(index, PARTITIONS, len(members)))})
            for index, member_id in enumerate(members)
        ]
        asked = classic_sync(self.stage, self.member_id, self.generation, assignments, protocol_name="range")
        if asked.answers and asked.answer.error_code == ErrorCode.NONE and asked.answer.assignment:
            assignment, _ = decode_assignment(asked.answer.assignment)
            self.owned = {number for each in assignment.assigned_partitions for number in each.partitions}

    def beat(self) -> None:
        asked = classic_beat(self.stage, self.member_id, self.generation)
        code = asked.error if asked.errors else ErrorCode(asked.answer.error_code)
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
        elif code is not ErrorCode.NONE:
            self.forget()

    def forget(self) -> None:
        self.owned, self.member_id, self.generation = set(), "", -1


class MigrationModel(RuleBasedStateMachine):
    """Two members of each protocol; one topic."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = ConsumerStage({"group.initial.rebalance.delay.ms": "0"})
        self.topic_id = self.stage.topics.add("t", PARTITIONS)
        self.consumers = {name: PlayedMember(self.stage, name, ["t"]) for name in CONSUMERS}
        self.classics = {name: EagerConsumer(self.stage) for name in CLASSICS}

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_joins(self, name: str) -> None:
        member = self.consumers[name]
        if not member.epoch:
            member.beat(full=True)

    @rule(name=st.sampled_from(CONSUMERS), obeys=st.booleans())
    def consumer_beats(self, name: str, obeys: bool) -> None:
        member = self.consumers[name]
        if member.epoch:
            code = member.beat(obeys=obeys)
            if code is ErrorCode.GROUP_ID_NOT_FOUND:
                member.owned, member.told, member.epoch = {}, None, 0

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_leaves(self, name: str) -> None:
        if self.consumers[name].epoch:
            self.consumers[name].leave()

    @rule(name=st.sampled_from(CLASSICS))
    def classic_joins(self, name: str) -> None:
        if self.classics[name].waits is None:
            self.classics[name].join()

    @rule(name=st.sampled_from(CLASSICS))
    def classic_beats(self, name: str) -> None:
        classic = self.classics[name]
        classic.look()
        if classic.waits is None and classic.generation > 0:
            classic.beat()

    @rule(name=st.sampled_from(CLASSICS))
    def classic_leaves(self, name: str) -> None:
        classic = self.classics[name]
        if classic.waits is None and classic.member_id:
            classic_leave(self.stage, classic.member_id)
            classic.forget()

    @rule(by_ms=st.sampled_from([1, 5_000, 9_000, 31_000]))
    def time_passes(self, by_ms: int) -> None:
        self.stage.advance(by_ms)

    @rule()
    def next_append_fails(self) -> None:
        self.stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    @rule()
    def coordinator_restarts(self) -> None:
        self.stage.reload()
        for classic in self.classics.values():
            classic.look()

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        group = self.stage.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        members = group.logged.members
        assert not shared_partitions(members.values())
        owners: dict[int, str] = {}
        held = {each.member_id: each.owned.get(self.topic_id, set()) for each in self.consumers.values()}
        for classic in self.classics.values():
            known = members.get(classic.member_id)
            if known is not None and known.epoch == classic.generation:
                held[classic.member_id] = classic.owned
        for member_id, numbers in held.items():
            for number in numbers if member_id in members else ():
                assert owners.setdefault(number, member_id) == member_id, number

    @invariant()
    def memory_is_what_the_log_says(self) -> None:
        live, replayed = self.stage.shard.groups.get(GROUP), self.stage.replayed().groups.get(GROUP)
        if isinstance(live, ConsumerGroup) or isinstance(replayed, ConsumerGroup):
            assert isinstance(live, ConsumerGroup)
            assert isinstance(replayed, ConsumerGroup)
            counted = {name: getattr(live.logged, name) for name in live.logged.__slots__}
            assert counted == facts(replayed.logged)
            assert set(live.deadlines) >= set(live.logged.members)


MigrationModel.TestCase.settings = settings(
    max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestMigrationModel = MigrationModel.TestCase
