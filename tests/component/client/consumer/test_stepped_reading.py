"""Whatever a user does, and whatever becomes of connections, sessions and leaders: once that stops, all is read."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kavka.client.consumer.errors import RecordDeserializationError
from kavka.client.consumer.positions import EARLIEST, LATEST, Position, ResetPolicy
from kavka.client.consumer.stretches import Deserializers
from kavka.client.errors import AnswerTimeoutError, DisconnectedError
from kavka.client.topic_partition import TopicPartition
from tests.component.client.consumer.served_by_a_core import (
    INFINITY,
    REQUEST_TIMEOUT_MS,
    CoreMetadata,
    CoreNetwork,
    SteppedReader,
)
from tests.support.broker_core import NOW_MS, BrokerCore
from tests.support.partition_logs import batch_of

TOPIC = "visits"
FIRST_EPOCH = 3
STEPS_AT_MOST = 2_000
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(2)]

partitions = st.sampled_from(PARTITIONS)


class SteppedReading(RuleBasedStateMachine):
    """`following` is the next offset that a partition has to give out; a pair where it is one of a range."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.core = BrokerCore(Path(self.directory.name), topics={TOPIC: {"segment.bytes": "1000"}})
        self.epoch = FIRST_EPOCH
        self.core.create(TOPIC, len(PARTITIONS), leader_epoch=self.epoch)
        self.network = CoreNetwork(self.core)
        self.metadata = CoreMetadata(self.core, self.network, TOPIC, len(PARTITIONS))
        self.bad: set[bytes] = set()
        self.reader = SteppedReader(self.network, self.metadata, Deserializers(value=self._deserialized))
        self.following: dict[TopicPartition, tuple[int, int]] = {}
        self.paused: set[TopicPartition] = set()

    def teardown(self) -> None:
        try:
            self._read_on_until_the_end()
        finally:
            self.core.close()
            self.directory.cleanup()

    @initialize(version=st.sampled_from([11, 12, 16, 18]), counts=st.lists(st.integers(1, 6), max_size=4))
    def begin(self, version: int, counts: list[int]) -> None:
        self.network.fetch_version = version
        for count in counts:
            self._append(PARTITIONS[0], count)
        self.assign(set(PARTITIONS))

    # The user

    @rule(chosen=st.sets(partitions, min_size=1))
    def assign(self, chosen: set[TopicPartition]) -> None:
        self.following = {partition: self.following.get(partition, (0, 0)) for partition in chosen}
        self.paused &= chosen
        self.reader.subscription.assign(sorted(chosen))

    @rule(most=st.sampled_from([1, 3, 500]))
    def poll(self, most: int) -> None:
        self._poll(most)

    @rule()
    def poll_columns(self) -> None:
        for columns in self.reader.buffer.take_columns(100):
            for offset, value in zip(columns.offsets.tolist(), columns.values(), strict=True):
                self._given(columns.topic_partition, offset, value)

    @rule(partition=partitions, share=st.floats(0, 1))
    def seek(self, partition: TopicPartition, share: float) -> None:
        if partition in self.following:
            offset = round(share * self._end(partition))
            self.reader.subscription.seek(partition, Position(offset))
            self.following[partition] = (offset, offset)

    @rule(partition=partitions)
    def seek_with_the_epoch_of_what_was_read(self, partition: TopicPartition) -> None:
        if partition in self.following:
            consumed = self.reader.subscription.consumed().get(partition)
            if consumed is not None:
                self.reader.subscription.seek(partition, Position(consumed.offset, consumed.leader_epoch))

    @rule(partition=partitions, to_end=st.booleans())
    def reset(self, partition: TopicPartition, to_end: bool) -> None:
        if partition in self.following:
            end = self._end(partition)
            self.reader.subscription.reset([partition], ResetPolicy(LATEST if to_end else EARLIEST))
            self.following[partition] = (end, 1 << 40) if to_end else (0, 0)

    @rule(chosen=st.sets(partitions, min_size=1), is_paused=st.booleans())
    def pause_or_resume(self, chosen: set[TopicPartition], is_paused: bool) -> None:
        some = chosen & self.following.keys()
        self.paused = self.paused | some if is_paused else self.paused - some
        self.reader.subscription.pause(some, is_paused=is_paused)

    @rule(partition=partitions, share=st.floats(0, 1))
    def have_a_deserializer_fail(self, partition: TopicPartition, share: float) -> None:
        self.bad.add(_value(partition, round(share * self._end(partition))))

    # The client's thread, the broker, and what lies between them

    @rule(steps=st.integers(1, 40), reads=st.booleans())
    def go_on(self, steps: int, reads: bool) -> None:
        """All goes well for a while."""
        for _ in range(steps):
            if not self._step(reads=reads):
                break

    @precondition(lambda self: self.reader.has_turn)
    @rule()
    def turn(self) -> None:
        self.reader.turn()

    @precondition(lambda self: self.network.is_connecting)
    @rule(succeeds=st.booleans())
    def connected(self, succeeds: bool) -> None:
        self._connected(succeeds=succeeds)

    @precondition(lambda self: self.network.wire is not None and self.network.wire.sent)
    @rule()
    def arrive(self) -> None:
        assert self.network.wire is not None
        self.network.arrive(self.network.wire)

    @precondition(lambda self: self.network.wire is not None and self.network.wire.has_answer)
    @rule()
    def answer(self) -> None:
        self.network.answer()

    @precondition(lambda self: self.network.wire is not None)
    @rule(is_late=st.booleans())
    def lose(self, is_late: bool) -> None:
        self.network.lose(AnswerTimeoutError("late") if is_late else DisconnectedError("lost"))

    @precondition(lambda self: self.network.cut)
    @rule(data=st.data())
    def arrive_late(self, data: st.DataObject) -> None:
        """What was sent on a connection that is over for the client comes before its end, or never."""
        wire = data.draw(st.sampled_from(self.network.cut))
        arrives = data.draw(st.booleans())
        if arrives and wire.sent:
            self.network.arrive(wire)
        else:
            self.network.end(wire)

    @precondition(lambda self: self.metadata.is_wanted)
    @rule(lacks_topic=st.booleans())
    def metadata_come(self, lacks_topic: bool) -> None:
        self._refresh(lacks_topic=lacks_topic)

    @rule()
    def metadata_grow_old(self) -> None:
        self._refresh()

    @rule()
    def another_epoch_begins(self) -> None:
        self.epoch += 1
        self.core.create(TOPIC, len(PARTITIONS), leader_epoch=self.epoch)

    @rule()
    def sessions_are_evicted(self) -> None:
        sessions = self.core.services.fetch_sessions
        for session in list(sessions._sessions.values()):
            sessions._evict(session)

    @rule(partition=partitions, counts=st.lists(st.integers(1, 40), min_size=1, max_size=4))
    def append(self, partition: TopicPartition, counts: list[int]) -> None:
        for count in counts:
            self._append(partition, count)

    @rule(ms=st.sampled_from([1, 50, 500, REQUEST_TIMEOUT_MS]))
    def time_passes(self, ms: float) -> None:
        self._pass(ms)

    # What has to be true

    def _read_on_until_the_end(self) -> None:
        """No fault any more. The user waits for news as `poll` does: who is not woken looks at nothing."""
        self.reader.subscription.pause(self.paused, is_paused=False)
        self.paused = set()
        # Each call of `poll` looks before it waits.
        self.reader.news.tell()
        for _ in range(STEPS_AT_MOST):
            if self._all_is_read() and not self.reader.news.is_told:
                return
            assert self._step(reads=True), f"everybody waits: {self._positions()}, {self.following}"
        raise AssertionError(f"it never comes to its end: {self._positions()}, {self.following}")

    def _step(self, *, reads: bool) -> bool:
        """What comes next; False where everybody waits for somebody else."""
        network, reader = self.network, self.reader
        if reads and reader.news.is_told:
            reader.news.is_told = False
            while self._poll(3):
                pass
        elif reader.has_turn:
            reader.turn()
        elif network.is_connecting:
            self._connected(succeeds=True)
        elif network.wire is not None and network.wire.has_answer:
            network.answer()
        elif network.wire is not None and network.wire.sent:
            network.arrive(network.wire)
        elif self.metadata.is_wanted and network.now_ms >= self.metadata.not_before_ms:
            self._refresh()
        else:
            network.notice_parked()
            next_ms = min([reader.sleeps_until_ms, network.deadline_ms, *network.parked.values()])
            if self.metadata.is_wanted:
                next_ms = min(next_ms, self.metadata.not_before_ms)
            if next_ms == INFINITY:
                return False
            self._pass(max(next_ms - network.now_ms, 0.0))
        return True

    def _poll(self, most: int) -> bool:
        """Whether it is worth another one."""
        try:
            records = [record for piece in self.reader.buffer.take(most) for record in piece.records()]
        except RecordDeserializationError as failure:
            partition, offset = failure.topic_partition, failure.offset
            self._given(partition, offset, _value(partition, offset))
            self.following[partition] = (offset + 1, offset + 1)
            assert _value(partition, offset) in self.bad
            # Again it is the same record, until somebody seeks.
            if partition.partition != 1:
                self.reader.subscription.seek(partition, Position(offset + 1))
            else:
                self.bad.discard(_value(partition, offset))
                self.following[partition] = (offset, offset)
            return True
        for record in records:
            self._given(record.topic_partition, record.offset, record.value)
        return bool(records)

    def _given(self, partition: TopicPartition, offset: int, value: Any) -> None:
        assert partition not in self.paused
        first, last = self.following[partition]
        assert first <= offset <= last, f"{partition} gave {offset}, {first} to {last} comes next"
        assert value == _value(partition, offset)
        self.following[partition] = (offset + 1, offset + 1)

    def _all_is_read(self) -> bool:
        positions = self._positions()
        return all(positions.get(partition) == self._end(partition) for partition in self.following)

    def _positions(self) -> dict[TopicPartition, int]:
        return {partition: place.offset for partition, place in self.reader.subscription.consumed().items()}

    def _end(self, partition: TopicPartition) -> int:
        return self.core.log(TOPIC, partition.partition).log_end_offset

    def _append(self, partition: TopicPartition, count: int) -> None:
        hosted = self.core.replicas.partitions[partition]
        end = self._end(partition)
        values = [_value(partition, offset) for offset in range(end, end + count)]
        hosted.append(memoryview(batch_of(*values)), 1, 9, NOW_MS)
        hosted.appended()
        self.core.stage.settle()

    def _connected(self, *, succeeds: bool) -> None:
        self.network.connected(succeeds=succeeds)
        self.reader.is_woken = True

    def _refresh(self, *, lacks_topic: bool = False) -> None:
        self.metadata.refresh(lacks_topic=lacks_topic)
        self.reader.is_woken = True

    def _pass(self, ms: float) -> None:
        self.network.now_ms += ms
        self.network.expire_due()

    def _deserialized(self, _topic: str, _headers: Any, value: bytes | None) -> bytes | None:
        if value in self.bad:
            raise ValueError(value)
        return value


def _value(partition: TopicPartition, offset: int) -> bytes:
    return b"%d:%d" % (partition.partition, offset)


TestSteppedReading = SteppedReading.TestCase
