"""Where a coordinator's shard is tested: its log is a list, its clock and timers stand still until they are moved.

stage = Stage(GroupShard)
stage.topics.add("t", partitions=3)
joined = stage.ask(lambda shard, reply: shard.join(request, client, reply))
stage.advance(3_000)
assert joined.answer.error_code == 0
stage.fail_next_append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
before, after = stage.shard, stage.reload()
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from kavka.config.broker_config import BrokerConfig
from kavka.config.group_config import GroupConfig
from kavka.coordinator.ports import Shard, ShardContext
from kavka.coordinator.runtime.result import CoordinatorRecord, Producer, Reply, Result
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import GROUP_RECORDS
from kavka.protocol.internal.record_codec import RecordTypes, decode_key, decode_value, encode_key, encode_value

S = TypeVar("S", bound=Shard)


class Stored(NamedTuple):
    """What the list that stands for the log holds: a record's bytes, or the end of a transaction."""

    key: bytes
    value: bytes | None
    producer: Producer | None = None
    committed: bool | None = None


class Asked:
    """A request that was put to the shard: its answer, once there is one."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.errors: list[BrokerError] = []

    @property
    def waits(self) -> bool:
        return not self.answers and not self.errors

    @property
    def answer(self) -> Any:
        """The response. Fails the test unless there is exactly one, and no error."""
        assert not self.errors, f"refused with {self.errors}"
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return self.answers[0]

    @property
    def error(self) -> ErrorCode:
        """The error that the operation was refused with. Fails the test unless it was."""
        assert len(self.errors) == 1, f"not refused: {self.answers or 'it waits'}"
        assert not self.answers, f"refused and answered: {self.answers}"
        return self.errors[0].code


class Stage(Generic[S]):
    """One shard, run as the runtime runs it: decide, append, replay, `appended`, replies.

    `log`: what was appended, as bytes. `counts`: how often the shard counted what. With `holds_replies` set, replies
    wait as for the high watermark, until `commit()`.
    """

    def __init__(
        self,
        make_shard: Callable[[ShardContext], S],
        settings: Mapping[str, str] | None = None,
        *,
        partition: int = 0,
        record_types: RecordTypes = GROUP_RECORDS,
        now_ms: int = 1_700_000_000_000,
        topics: StageTopics | None = None,
    ) -> None:
        self.time_ms = self.day_began_ms = now_ms
        self.partition = partition
        self.leader_epoch = 0
        self.config = BrokerConfig(settings or {})
        self.group_overrides: dict[str, dict[str, str]] = {}
        self.topics = topics or StageTopics()
        self.counts: Counter[str] = Counter()
        self.log: list[Stored] = []
        self.holds_replies = False
        self.refused: list[BrokerError] = []
        self._held: list[tuple[Reply, Any]] = []
        self._uncommitted: list[Result] = []
        self._failure: BrokerError | None = None
        self._make_shard = make_shard
        self._record_types = record_types
        self.timers = StageTimers(self)
        self.shard = make_shard(self)
        self.run(lambda shard: shard.loaded())

    # What the shard sees (ShardContext).

    @property
    def group_config(self) -> Callable[[str], GroupConfig]:
        return lambda group_id: GroupConfig(self.config, self.group_overrides.get(group_id, {}))

    @property
    def now_ms(self) -> Callable[[], int]:
        return lambda: self.time_ms

    @property
    def monotonic_ms(self) -> Callable[[], int]:
        return lambda: self.time_ms - self.day_began_ms

    @property
    def count(self) -> Callable[[str], None]:
        return self._count

    def _count(self, name: str) -> None:
        self.counts[name] += 1

    # What tests do.

    def run(self, operation: Callable[[S], Result], refused: Callable[[BrokerError], None] | None = None) -> None:
        """Put an operation to the shard. Errors without a `refused` are kept in `self.refused`."""
        refused = refused or self.refused.append
        try:
            result = operation(self.shard)
        except BrokerError as error:
            refused(error)
            return
        try:
            self._send(self._carry_out(result, refused))
        except BrokerError as error:
            refused(error)

    def ask(self, operation: Callable[[S, Reply], Result]) -> Asked:
        """Put an operation with a reply to the shard."""
        asked = Asked()
        self.run(lambda shard: operation(shard, asked.answers.append), asked.errors.append)
        return asked

    def advance(self, by_ms: float) -> None:
        """Let time pass; each timer that falls due runs at its own moment."""
        until_ms = self.time_ms + by_ms
        while (due := self.timers.next_due(until_ms)) is not None:
            at_ms, operation = due
            self.time_ms = max(self.time_ms, int(at_ms))
            self.run(partial(_on_time, operation))
        self.time_ms = int(until_ms)

    def set_clock(self, forward_ms: int) -> None:
        """Somebody sets the time of day forward; no time passes."""
        self.time_ms += forward_ms
        self.day_began_ms += forward_ms

    def fail_next_append(self, code: ErrorCode, cause: ErrorCode | None = None) -> None:
        """The next append fails with this (translated) error; `cause` is what the log itself said."""
        self._failure = BrokerError(code)
        self._failure.__cause__ = BrokerError(cause or code)

    def commit(self) -> None:
        """The high watermark passes all that was appended: replies that wait for it go out."""
        held, self._held = self._held, []
        self._uncommitted.clear()
        self._send(held)

    def time_out(self) -> None:
        """It does not, and they wait no longer: what each Result has for that goes out instead."""
        waited, self._uncommitted = self._uncommitted, []
        self._held.clear()
        for result in waited:
            if result.uncommitted is not None:
                for reply, response in result.uncommitted(BrokerError(ErrorCode.REQUEST_TIMED_OUT)):
                    reply(response)

    def topics_changed(self) -> None:
        self.run(lambda shard: shard.topics_changed())

    def end_transaction(self, producer: Producer, *, committed: bool) -> None:
        """A marker arrives on the partition."""
        self.log.append(Stored(b"", None, producer, committed))
        self.shard.replay_end_marker(producer.producer_id, producer.producer_epoch, committed)

    def unload(self) -> None:
        """The broker leads the partition no more."""
        self.timers.clear()
        self._held.clear()
        self._uncommitted.clear()
        self._send(self.shard.unloaded().replies)

    def replayed(self) -> S:
        """A shard made of the log alone, to be compared; it has no timers, and is not put on stage."""
        timers, self.timers = self.timers, StageTimers(self)
        try:
            shard = self._make_shard(self)
            for offset, stored in enumerate(self.log):
                self._replay_stored(shard, offset, stored)
            return shard
        finally:
            self.timers = timers

    def reload(
        self, meanwhile: Callable[[], object] = lambda: None, *, before: Callable[[], object] = lambda: None
    ) -> S:
        """Drop the shard, and load another from the log, as after a restart; returns the new one.

        `before`: called when nothing is replayed yet; `meanwhile`: when all is, and the shard is not told so yet.
        """
        self.unload()
        self.leader_epoch += 1
        self.shard = self._make_shard(self)
        before()
        for offset, stored in enumerate(self.log):
            self._replay_stored(self.shard, offset, stored)
        meanwhile()
        self.run(lambda shard: shard.loaded())
        return self.shard

    def records(self) -> list[CoordinatorRecord]:
        """What was appended, decoded; markers left out."""
        return [self._decode(stored) for stored in self.log if stored.committed is None]

    # How a decision is carried out.

    def _carry_out(self, result: Result | None, refused: Callable[[BrokerError], None]) -> list[tuple[Reply, Any]]:
        replies: list[tuple[Reply, Any]] = []
        while result is not None:
            error = self._append(result)
            if error is None:
                if self.holds_replies and not result.records and not result.reads_committed:
                    for reply, response in result.replies:
                        reply(response)
                else:
                    replies += result.replies
                    if self.holds_replies:
                        self._uncommitted.append(result)
                result = result.appended() if result.appended is not None else None
            elif result.failed is not None:
                result = result.failed(error)
            else:
                if not replies:
                    refused(error)
                break
        return replies

    def _append(self, result: Result) -> BrokerError | None:
        if not result.records:
            return None
        encoded = [
            Stored(
                encode_key(record.key),
                None if record.value is None else encode_value(record.value, record.value_version),
                result.producer,
            )
            for record in result.records
        ]
        error, self._failure = self._failure, None
        if error is not None:
            return error
        for record, stored in zip(result.records, encoded, strict=True):
            self.log.append(stored)
            if result.replays:
                self.shard.replay(record, len(self.log) - 1, result.producer)
        return None

    def _send(self, replies: Iterable[tuple[Reply, Any]]) -> None:
        if self.holds_replies:
            self._held += replies
            return
        for reply, response in replies:
            reply(response)

    def _replay_stored(self, shard: S, offset: int, stored: Stored) -> None:
        if stored.committed is not None:
            assert stored.producer is not None
            shard.replay_end_marker(*stored.producer, stored.committed)
        else:
            shard.replay(self._decode(stored), offset, stored.producer)

    def _decode(self, stored: Stored) -> CoordinatorRecord:
        key, value_class = decode_key(self._record_types, stored.key)
        if stored.value is None:
            return CoordinatorRecord(key, None)
        return CoordinatorRecord(key, *decode_value(value_class, stored.value))


def _on_time(operation: Callable[[], Result], _shard: object) -> Result:
    return operation()


class StillClock:
    """A clock that always says zero."""

    now_ms = monotonic_ms = staticmethod(lambda: 0)


class StageTimers:
    """Timers that wait for `Stage.advance`."""

    def __init__(self, stage: Stage[Any]) -> None:
        self._stage = stage
        self._order = 0
        self._heap: list[tuple[float, int, Hashable]] = []
        self._operations: dict[Hashable, tuple[int, Callable[[], Result]]] = {}

    def schedule(self, key: Hashable, delay_ms: float, operation: Callable[[], Result]) -> None:
        self._order += 1
        self._operations[key] = (self._order, operation)
        heapq.heappush(self._heap, (self._stage.time_ms + max(delay_ms, 0), self._order, key))

    def cancel(self, key: Hashable) -> None:
        self._operations.pop(key, None)

    def is_scheduled(self, key: Hashable) -> bool:
        return key in self._operations

    def keys(self) -> set[Hashable]:
        """What waits, for assertions."""
        return set(self._operations)

    def next_due(self, until_ms: float) -> tuple[float, Callable[[], Result]] | None:
        while self._heap and self._heap[0][0] <= until_ms:
            at_ms, order, key = heapq.heappop(self._heap)
            waiting = self._operations.get(key)
            if waiting is not None and waiting[0] == order:
                del self._operations[key]
                return at_ms, waiting[1]
        return None

    def clear(self) -> None:
        self._heap.clear()
        self._operations.clear()


class StageTopics:
    """Topics that a test adds, grows and removes; the shard is told by `Stage.topics_changed`."""

    def __init__(self) -> None:
        self._topics: dict[str, tuple[bytes, int, dict[int, frozenset[str]]]] = {}
        self._made = 0
        self._version = 0

    def add(
        self,
        name: str,
        partitions: int = 1,
        *,
        topic_id: bytes | None = None,
        racks: Mapping[int, Iterable[str]] | None = None,
    ) -> bytes:
        """A topic comes, or changes; returns its id."""
        self._made += 1
        self._version += 1
        kept = self._topics[name][0] if name in self._topics else self._made.to_bytes(16, "big")
        by_partition = {partition: frozenset(names) for partition, names in (racks or {}).items()}
        self._topics[name] = (topic_id or kept, partitions, by_partition)
        return self._topics[name][0]

    def remove(self, name: str) -> None:
        self._version += 1
        del self._topics[name]

    def topic_id(self, name: str) -> bytes | None:
        return self._topics[name][0] if name in self._topics else None

    def name_of(self, topic_id: bytes) -> str | None:
        return next((name for name, topic in self._topics.items() if topic[0] == topic_id), None)

    def partition_count(self, name: str) -> int | None:
        return self._topics[name][1] if name in self._topics else None

    def racks(self, name: str, partition: int) -> frozenset[str]:
        return self._topics[name][2].get(partition, frozenset()) if name in self._topics else frozenset()

    def names(self) -> Iterable[str]:
        return list(self._topics)

    @property
    def version(self) -> int:
        return self._version
