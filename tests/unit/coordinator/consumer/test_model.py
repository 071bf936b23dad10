"""Consumer groups under random orders of heartbeats, leaves, timeouts, topics, failed appends and restarts."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kavka.coordinator.group.consumer.group import ConsumerGroup
from kavka.protocol.errors import ErrorCode
from tests.support.consumer_stage import GROUP, ConsumerStage, PlayedMember, facts
from tests.support.shared_partitions import shared_partitions

NAMES = ["a", "b", "c", "d"]
TOPICS = ["x", "y", "z"]
SUBSCRIPTIONS: st.SearchStrategy[tuple[list[str], str]] = st.one_of(
    st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True).map(lambda topics: (topics, "")),
    st.sampled_from(["[xy]", "z|x", ".*"]).map(lambda regex: ([], regex)),
)


class ConsumerGroupModel(RuleBasedStateMachine):
    """Four members, one of them static, and three topics that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = ConsumerStage()
        self.stage.topics.add("x", 4)
        self.members = {
            name: PlayedMember(self.stage, name, ["x"], instance_id="static" if name == "d" else None) for name in NAMES
        }
        self.epochs: dict[str, int] = {}
        self.lives = 0

    @rule(name=st.sampled_from(NAMES), subscription=SUBSCRIPTIONS)
    def join(self, name: str, subscription: tuple[list[str], str]) -> None:
        member = self.members[name]
        member.topics, member.regex = subscription
        member.owned, member.told, member.epoch = {}, None, 0
        asked = member.send(full=True)
        if asked.answers:
            member.take(asked.answer)
        else:
            assert asked.error in (ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.NOT_COORDINATOR)

    @rule(name=st.sampled_from(NAMES), obeys=st.booleans(), full=st.booleans())
    def heartbeat(self, name: str, obeys: bool, full: bool) -> None:
        member = self.members[name]
        if member.epoch:
            member.beat(full=full, obeys=obeys)

    @rule(name=st.sampled_from(NAMES))
    def heartbeat_whose_answer_is_lost(self, name: str) -> None:
        member = self.members[name]
        if member.epoch:
            member.send()
            member.says_all = True

    @rule(name=st.sampled_from(NAMES))
    def give_up_what_is_to_be_given_up(self, name: str) -> None:
        self.members[name].obey()

    @rule(name=st.sampled_from(NAMES), subscription=SUBSCRIPTIONS)
    def subscribe(self, name: str, subscription: tuple[list[str], str]) -> None:
        member = self.members[name]
        member.topics, member.regex = subscription
        if member.epoch:
            member.beat(full=True)

    @rule(name=st.sampled_from(NAMES))
    def leave(self, name: str) -> None:
        if self.members[name].epoch:
            self.members[name].leave()

    @rule(new_id=st.sampled_from(["d", "d2", "d3"]))
    def the_static_member_leaves_for_a_while(self, new_id: str) -> None:
        member = self.members["d"]
        if member.epoch and member.leave(-2).answers:
            member.member_id = new_id

    @rule(by_ms=st.sampled_from([1, 1_500, 11_000, 31_000, 46_000]))
    def time_passes(self, by_ms: int) -> None:
        self.stage.advance(by_ms)

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 6))
    def topic_changes(self, name: str, partitions: int) -> None:
        count = self.stage.topics.partition_count(name)
        if count is None or count < partitions:
            self.stage.topics.add(name, partitions)
            self.stage.topics_changed()

    @rule(name=st.sampled_from(TOPICS))
    def topic_is_deleted(self, name: str) -> None:
        if self.stage.topics.topic_id(name) is not None:
            self.stage.topics.remove(name)
            self.stage.topics_changed()

    @rule()
    def next_append_fails(self) -> None:
        self.stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    @rule()
    def coordinator_restarts(self) -> None:
        self.stage.reload()

    @precondition(lambda self: any(member.epoch for member in self.members.values()))
    @rule()
    def all_heartbeats_arrive(self) -> None:
        """Once everybody is heard of, everybody gets what the target gives, and all of it is given."""
        self.stage.fail_next_append(ErrorCode.NONE)
        self.stage._failure = None
        self.stage.advance(11_000)
        present = [member for member in self.members.values() if member.epoch]
        for _ in range(14):
            for member in present:
                member.beat()
            self.stage.advance(1)
        group = self.stage.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup) or len(group.logged.members) > sum(1 for m in present if m.epoch):
            return  # A member that is not heard of any more holds things up until its session ends.
        assert group.state_name == ("Stable" if group.logged.members else "Empty")
        for member in present:
            if member.epoch:
                target = {topic_id: set(numbers) for topic_id, numbers in group.logged.target(member.member_id).items()}
                assert member.owned == target
        wanted = {
            (topic_id, number)
            for name in group.logged.subscribed_names()
            if (topic_id := self.stage.topics.topic_id(name)) is not None
            for number in range(self.stage.topics.partition_count(name) or 0)
        }
        given = [(t, n) for member in present for t, numbers in member.owned.items() for n in numbers]
        assert sorted(given) == (sorted(wanted) if group.logged.members else [])

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        group = self.stage.shard.groups.get(GROUP)
        if not isinstance(group, ConsumerGroup):
            return
        assert not shared_partitions(group.logged.members.values())
        owners: dict[tuple[bytes, int], str] = {}
        for member in self.members.values():
            if member.member_id in group.logged.members:
                for topic_id, numbers in member.owned.items():
                    for number in numbers:
                        other = owners.setdefault((topic_id, number), member.member_id)
                        assert other == member.member_id, f"{other} and {member.member_id} own {topic_id!r}-{number}"

    @invariant()
    def epochs_never_go_back(self) -> None:
        group = self.stage.shard.groups.get(GROUP)
        now: dict[str, int] = {}
        if isinstance(group, ConsumerGroup):
            now["group"] = group.logged.epoch
            now["target"] = group.logged.target_epoch
            now |= {f"member {m.member_id}": m.epoch for m in group.logged.members.values() if m.epoch > 0}
            assert group.logged.target_epoch <= group.logged.epoch
            assert all(member.epoch <= group.logged.target_epoch for member in group.logged.members.values())
        for name, epoch in now.items():
            assert epoch >= self.epochs.get(name, 0), name
        self.epochs = now

    @invariant()
    def memory_is_what_the_log_says(self) -> None:
        live, replayed = self.stage.shard.groups.get(GROUP), self.stage.replayed().groups.get(GROUP)
        assert isinstance(live, ConsumerGroup) == isinstance(replayed, ConsumerGroup)
        if isinstance(live, ConsumerGroup) and isinstance(replayed, ConsumerGroup):
            counted: dict[str, Any] = {name: getattr(live.logged, name) for name in live.logged.__slots__}
            assert counted == facts(replayed.logged)


ConsumerGroupModel.TestCase.settings = settings(
    max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestConsumerGroupModel = ConsumerGroupModel.TestCase
