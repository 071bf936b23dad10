"""Classic groups driven through random requests, lost time, failed appends and reloads.

What must hold: each request gets one answer, or waits with a timer running; all who are told the assignment of one
generation are told the same one; the log says what memory says of a group that is Stable or Empty.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.member import ClassicMember
from kavka.coordinator.group.classic.states import ClassicState
from kavka.protocol.errors import ErrorCode
from tests.support.classic_stage import GROUP, ClassicStage, logged_state
from tests.support.coordinator_stage import Asked

FAILURES = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_SERVER_ERROR)
PROTOCOLS = (
    (("range", b"1"),),
    (("range", b"2"), ("sticky", b"2")),
    (("sticky", b"3"), ("range", b"3")),
)
INSTANCES = (None, "a", "b")
MEMBERS_KEPT = 8


class GroupMachine(RuleBasedStateMachine):
    """`known`: every member id that was ever given out, with its instance id, newest last."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[tuple[str, str | None]] = []
        self.asked: list[Asked] = []
        self.syncs: list[tuple[Asked, str, int]] = []
        self.assigned: dict[tuple[int, str], bytes] = {}

    @initialize(limit=st.sampled_from(["3", "1000"]), delay=st.sampled_from(["0", "3000"]))
    def begin(self, limit: str, delay: str) -> None:
        self.stage = ClassicStage(group_max_size=limit, group_initial_rebalance_delay_ms=delay)

    @rule(instance=st.sampled_from(INSTANCES), protocols=st.sampled_from(PROTOCOLS), version=st.sampled_from([3, 8, 9]))
    def join_anew(self, instance: str | None, protocols: Any, version: int) -> None:
        asked = self.stage.join(
            instance_id=instance, protocols=protocols, version=version, session_ms=10_000, rebalance_ms=30_000
        )
        self.asked.append(asked)
        self.learn(asked, instance)

    @rule(which=st.integers(0, MEMBERS_KEPT), protocols=st.sampled_from(PROTOCOLS))
    def join_again(self, which: int, protocols: Any) -> None:
        member_id, instance = self.member(which)
        asked = self.stage.join(
            member_id, instance_id=instance, protocols=protocols, session_ms=15_000, rebalance_ms=30_000
        )
        self.asked.append(asked)

    @rule()
    def all_join_again(self) -> None:
        for member in self.members():
            if member.awaiting_join is None:
                self.asked.append(
                    self.stage.join(member.member_id, instance_id=member.instance_id, protocols=member.protocols)
                )

    @rule(which=st.integers(0, MEMBERS_KEPT), late=st.integers(0, 1), content=st.binary(max_size=2))
    def sync(self, which: int, late: int, content: bytes) -> None:
        self.put_sync(*self.member(which), self.generation() - late, content)

    @rule(content=st.binary(max_size=2))
    def all_sync(self, content: bytes) -> None:
        for member in self.members():
            self.put_sync(member.member_id, member.instance_id, self.generation(), content)

    @rule(which=st.integers(0, MEMBERS_KEPT))
    def heartbeat(self, which: int) -> None:
        member_id, instance = self.member(which)
        self.stage.heartbeat(member_id, self.generation(), instance_id=instance)

    @rule()
    def all_heartbeat(self) -> None:
        for member in self.members():
            code = self.stage.heartbeat(member.member_id, self.generation(), instance_id=member.instance_id)
            assert code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)

    @rule(which=st.integers(0, MEMBERS_KEPT), by_instance=st.booleans())
    def leave(self, which: int, by_instance: bool) -> None:
        member_id, instance = self.member(which)
        who = ("", instance) if by_instance and instance is not None else member_id
        self.asked.append(self.stage.leave(who))

    @rule(by_ms=st.sampled_from([1, 1_500, 3_000, 9_999, 10_000, 30_000, 300_000]))
    def pass_time(self, by_ms: int) -> None:
        self.stage.advance(by_ms)

    @rule(code=st.sampled_from(FAILURES))
    def fail_next_append(self, code: ErrorCode) -> None:
        self.stage.fail_next_append(code)

    @rule(content=st.binary(max_size=2))
    def settle(self, content: bytes) -> None:
        """Everybody does what a good client does, until the group is Stable."""
        for _ in range(3):
            self.all_join_again()
            self.stage.advance(3_000)
        self.all_sync(content)

    @rule(content=st.binary(max_size=2), instance=st.sampled_from(INSTANCES))
    def come_and_settle(self, content: bytes, instance: str | None) -> None:
        self.join_anew(instance, PROTOCOLS[0], 3)
        self.settle(content)

    @rule(often=st.integers(0, 3))
    def reload(self, often: int) -> None:
        if often:
            return
        self.stage.reload()
        assert not any(asked.waits for asked in self.asked), "someone waits at a shard that is gone"

    @invariant()
    def everybody_has_one_answer_at_most(self) -> None:
        for asked in self.asked:
            assert not asked.errors
            assert len(asked.answers) <= 1
        self.asked = [asked for asked in self.asked if asked.waits] or self.asked[-1:]

    @invariant()
    def nobody_of_a_generation_has_two_assignments(self) -> None:
        waiting = []
        for asked, member_id, generation in self.syncs:
            if asked.waits:
                waiting.append((asked, member_id, generation))
            elif asked.answer.error_code:
                assert asked.answer.assignment == b""
            else:
                told = self.assigned.setdefault((generation, member_id), asked.answer.assignment)
                assert told == asked.answer.assignment
        self.syncs = waiting

    @invariant()
    def who_waits_is_kept_by_the_group(self) -> None:
        members = self.members()
        waiting = sum((member.awaiting_join is not None) + (member.awaiting_sync is not None) for member in members)
        assert waiting == sum(asked.waits for asked in self.asked)

    @invariant()
    def nobody_waits_without_a_timer(self) -> None:
        group = self.group()
        if group is None:
            return
        keys = self.stage.timers.keys()
        if group.state is ClassicState.PREPARING_REBALANCE:
            assert ("join", GROUP) in keys
        if group.state is ClassicState.COMPLETING_REBALANCE:
            assert ("sync", GROUP) in keys
        for member in group.members.values():
            assert member.is_excused or ("session", GROUP, member.member_id) in keys
        assert all(("session", GROUP, member_id) in keys for member_id in group.pending)

    @invariant()
    def counts_are_those_of_the_members(self) -> None:
        group = self.group()
        if group is None:
            return
        members = group.members.values()
        assert group.awaiting_join_count == sum(member.awaiting_join is not None for member in members)
        assert group.static_members == {
            member.instance_id: member.member_id for member in members if member.instance_id is not None
        }
        assert group.pending_sync <= group.members.keys()
        assert not group.pending & group.members.keys()
        assert (group.leader_id is None) == (not group.members)
        assert group.leader_id is None or group.leader_id in group.members

    @invariant()
    def the_log_says_what_memory_says(self) -> None:
        group = self.group()
        if group is None or group.state not in (ClassicState.STABLE, ClassicState.EMPTY) or not group.generation:
            return
        replayed = self.stage.replayed().table.get(GROUP)
        assert isinstance(replayed, ClassicGroup)
        assert logged_state(replayed) == logged_state(group)
        assert replayed.protocol_type == group.protocol_type

    def put_sync(self, member_id: str, instance: str | None, generation: int, content: bytes) -> None:
        given = {member.member_id: content + member.member_id.encode() for member in self.members()}
        asked = self.stage.sync(member_id, generation, given, instance_id=instance, protocol_name=None)
        self.asked.append(asked)
        self.syncs.append((asked, member_id, generation))

    def learn(self, asked: Asked, instance: str | None) -> None:
        group = self.group()
        given = [each.answers[0].member_id for each in [asked] if each.answers and each.answers[0].member_id]
        if group is not None:
            given += [member_id for member_id in group.members if all(member_id != old for old, _ in self.known)]
        self.known += [(member_id, instance) for member_id in given]

    def member(self, which: int) -> tuple[str, str | None]:
        recent = self.known[-MEMBERS_KEPT:]
        return recent[which] if which < len(recent) else ("stranger", None)

    def members(self) -> list[ClassicMember]:
        group = self.group()
        return [] if group is None else list(group.members.values())

    def generation(self) -> int:
        group = self.group()
        return 0 if group is None else group.generation

    def group(self) -> ClassicGroup | None:
        group = self.stage.shard.table.get(GROUP)
        assert group is None or isinstance(group, ClassicGroup)
        return group


TestGroups = GroupMachine.TestCase
TestGroups.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
