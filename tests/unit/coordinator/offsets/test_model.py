"""Random orders of commits, transactions, deletions, expiry, failed appends and reloads, beside a dict as the model."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from tests.support.offset_stage import MINUTE_MS, OffsetStage

RETENTION_MS = 60 * MINUTE_MS
TOPICS = ("events", "others")
Place = tuple[str, str, int]

groups = st.sampled_from(["a", "b"])
places = st.tuples(st.sampled_from(TOPICS), st.integers(0, 2))
offsets = st.integers(0, 1000)
producers = st.sampled_from([Producer(1, 0), Producer(2, 0)])


class Model:
    """What must be committed and pending: place -> (offset, commit time, when it was said)."""

    def __init__(self) -> None:
        self.committed: dict[Place, tuple[int, int, int]] = {}
        self.pending: dict[int, dict[Place, tuple[int, int, int]]] = {}
        self.open: dict[int, set[str]] = {}
        self.groups: set[str] = set()
        self.said = 0

    def put(self, place: Place, offset: int, now_ms: int, producer: Producer | None) -> None:
        self.said += 1
        self.groups.add(place[0])
        if producer is None:
            self.committed[place] = (offset, now_ms, self.said)
        else:
            self.pending.setdefault(producer.producer_id, {})[place] = (offset, now_ms, self.said)
            self.open.setdefault(producer.producer_id, set()).add(place[0])

    def end(self, producer: Producer, committed: bool) -> None:
        self.open.pop(producer.producer_id, None)
        for place, value in self.pending.pop(producer.producer_id, {}).items():
            if committed and (place not in self.committed or self.committed[place][2] < value[2]):
                self.committed[place] = value

    def forget(self, place: Place) -> None:
        self.committed.pop(place, None)
        for pending in self.pending.values():
            pending.pop(place, None)

    def is_pending(self, place: Place) -> bool:
        return any(place in pending for pending in self.pending.values())

    def is_open(self, group: str) -> bool:
        return any(group in open_groups for open_groups in self.open.values())

    def expire(self, now_ms: int) -> None:
        for place, (_, committed_ms, _) in list(self.committed.items()):
            if now_ms - committed_ms >= RETENTION_MS and not self.is_pending(place):
                del self.committed[place]
        for group in list(self.groups):
            if not self.is_open(group) and not any(place[0] == group for place in self.committed):
                self.groups.discard(group)


class OffsetMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = OffsetStage({"offsets.retention.minutes": "60"}, TOPICS)
        self.model = Model()

    @rule(group=groups, wanted=st.dictionaries(places, offsets, min_size=1), fails=st.booleans())
    def commit(self, group: str, wanted: dict[tuple[str, int], int], fails: bool) -> None:
        self._put(group, wanted, None, fails)

    @rule(group=groups, wanted=st.dictionaries(places, offsets, min_size=1), producer=producers, fails=st.booleans())
    def txn_commit(self, group: str, wanted: dict[tuple[str, int], int], producer: Producer, fails: bool) -> None:
        self._put(group, wanted, producer, fails)

    def _put(self, group: str, wanted: dict[tuple[str, int], int], producer: Producer | None, fails: bool) -> None:
        if fails:
            self.stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if producer is None:
            asked = self.stage.put_offsets(wanted, group)
        else:
            asked = self.stage.txn_commit(wanted, producer, group)
        if fails:
            assert asked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            return
        assert asked.answer is not None
        for (topic, partition), offset in wanted.items():
            self.model.put((group, topic, partition), offset, self.stage.time_ms, producer)

    @rule(producer=producers, committed=st.booleans())
    def end_transaction(self, producer: Producer, committed: bool) -> None:
        self.stage.end_transaction(producer, committed=committed)
        self.model.end(producer, committed)

    @rule(group=groups, wanted=st.lists(places, min_size=1, unique=True))
    def delete_offsets(self, group: str, wanted: list[tuple[str, int]]) -> None:
        asked = self.stage.delete_offsets(wanted, group)
        if group not in self.model.groups:
            assert asked.error is ErrorCode.GROUP_ID_NOT_FOUND
            return
        assert asked.answer.error_code == ErrorCode.NONE
        for topic, partition in wanted:
            self.model.forget((group, topic, partition))

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        known = group in self.model.groups
        assert self.stage.delete_groups(group) == {group: ErrorCode.NONE if known else ErrorCode.GROUP_ID_NOT_FOUND}
        self.model.groups.discard(group)
        for place in [*self.model.committed, *(place for each in self.model.pending.values() for place in each)]:
            if place[0] == group:
                self.model.forget(place)

    @rule(topic=st.sampled_from(TOPICS), again=st.booleans())
    def delete_topic(self, topic: str, again: bool) -> None:
        self.stage.topics.remove(topic)
        if not again:
            self.stage.topics_changed()
        self.stage.topics.add(topic, partitions=3)
        self.stage.topics_changed()
        # Another topic's turns may not be over.
        self.stage.advance(0)
        for place in [*self.model.committed, *(place for each in self.model.pending.values() for place in each)]:
            if place[1] == topic:
                self.model.forget(place)

    @rule()
    def time_passes(self) -> None:
        """Long enough for a check of the expiry, too short for two to be told apart."""
        self.stage.advance(25 * MINUTE_MS)
        self.model.expire(self.stage.time_ms)

    @rule()
    def reload(self) -> None:
        self.stage.reload()

    @invariant()
    def live_is_replayed_is_model(self) -> None:
        live, replayed = self.stage.shard, self.stage.replayed()
        assert live.offsets.content() == replayed.offsets.content()
        assert live.offsets.count == replayed.offsets.count == len(self.model.committed)
        ids = {group.group_id for group in live.groups.all()}
        assert ids == {group.group_id for group in replayed.groups.all()} == self.model.groups
        for group in ("a", "b"):
            told: dict[Any, int] = self.stage.offsets(group)
            assert told == {place[1:]: value[0] for place, value in self.model.committed.items() if place[0] == group}
            stable = self.stage.ask_offsets([(t, p) for t in TOPICS for p in range(3)], group, stable=True).answer
            unstable = {
                (topic.name, part.partition_index)
                for topic in stable.topics
                for part in topic.partitions
                if part.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
            }
            assert unstable == {
                place[1:] for each in self.model.pending.values() for place in each if place[0] == group
            }


TestOffsets = OffsetMachine.TestCase
TestOffsets.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, derandomize=True)
