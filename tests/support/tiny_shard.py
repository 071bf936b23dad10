"""The smallest shard there can be, and what a runtime needs around it: a register of offsets by group."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from kavka.config.broker_config import BrokerConfig
from kavka.config.group_config import GroupConfig
from kavka.coordinator.ports import ShardContext, Surroundings
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Producer, Reply, Result
from kavka.coordinator.runtime.runtime import CoordinatorRuntime
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.group_records import GROUP_RECORDS, OffsetCommitKey, OffsetCommitValue
from kavka.protocol.records.batch import Codec
from tests.support.coordinator_stage import StageTopics
from tests.support.processes import wait_until

NOW_MS = 1_700_000_000_000


def record_of(group: str, offset: int | None) -> CoordinatorRecord:
    key = OffsetCommitKey(group=group, topic="t", partition=0)
    if offset is None:
        return CoordinatorRecord(key, None)
    return CoordinatorRecord(
        key, OffsetCommitValue(offset=offset, leader_epoch=-1, metadata="", commit_timestamp=NOW_MS), 3
    )


class TinyShard:
    """Implements `Shard`: `offsets` by group, and those of transactions that go on in `pending`.

    The group `poison` cannot be replayed.
    """

    def __init__(self, context: ShardContext, poison: str | None = None) -> None:
        self.context = context
        self._poison = poison
        self.offsets: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.waiting: list[Reply] = []
        self.topics_seen = 0
        self.is_loaded = False
        self.replayed = 0

    def put(self, group: str, offset: int | None, reply: Reply, **options: Any) -> Result:
        return Result([record_of(group, offset)], [(reply, offset)], **options)

    def get(self, group: str, reply: Reply) -> Result:
        return Result(replies=[(reply, self.offsets.get(group))], reads_committed=True)

    def wait(self, reply: Reply) -> Result:
        self.waiting.append(reply)
        return NOTHING

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        assert isinstance(record.key, OffsetCommitKey)
        assert record.value is None or isinstance(record.value, OffsetCommitValue)
        self.replayed += 1
        if record.key.group == self._poison:
            raise ValueError("poison")
        target = self.offsets if producer is None else self.pending.setdefault(producer.producer_id, {})
        if record.value is None:
            target.pop(record.key.group, None)
        else:
            target[record.key.group] = record.value.offset

    def replay_end_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        pending = self.pending.pop(producer_id, {})
        if committed:
            self.offsets |= pending

    def loaded(self) -> Result:
        self.is_loaded = True
        return NOTHING

    def unloaded(self) -> Result:
        return Result(replies=[(reply, ErrorCode.NOT_COORDINATOR) for reply in self.waiting])

    def topics_changed(self) -> Result:
        self.topics_seen = self.context.topics.version
        return NOTHING


def bare_shard() -> TinyShard:
    """A shard without a context, to be replayed into."""
    nothing: Any = None
    return TinyShard(nothing)


class Entry:
    def __init__(self, at_ms: float, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback


class Delays:
    """A timer that a test moves on."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.entries: list[Entry] = []

    def schedule(self, callback: Callable[[], None], delay_ms: float) -> Entry:
        entry = Entry(self.now_ms + delay_ms, callback)
        self.entries.append(entry)
        return entry

    def cancel(self, entry: Entry) -> bool:
        if entry not in self.entries:
            return False
        self.entries.remove(entry)
        return True

    def advance(self, by_ms: float) -> None:
        self.now_ms += by_ms
        for entry in sorted(self.entries, key=lambda each: each.at_ms):
            if entry.at_ms <= self.now_ms and entry in self.entries:
                self.entries.remove(entry)
                entry.callback()


class TinyWorld:
    """Surroundings, and a runtime of tiny shards."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, codec: int = Codec.NONE) -> None:
        self.config = BrokerConfig(settings or {})
        self.topics = StageTopics()
        self.counts: Counter[str] = Counter()
        self.delays = Delays()
        self.jobs: list[Callable[[], None]] = []
        self.died: list[BaseException] = []
        self.load_buffer_bytes = 1 << 20
        self.poison: str | None = "poison"
        self.loading = threading.Event()
        self.loading.set()
        self.surroundings = Surroundings(
            now_ms=lambda: NOW_MS,
            monotonic_ms=lambda: 0,
            config=lambda: self.config,
            group_config=lambda _: GroupConfig(self.config, {}),
            topics=self.topics,
            count_event=lambda name: self.counts.update([name]),
            delays=self.delays,
            execute=self.jobs.append,
            thread_died=self.died.append,
        )
        self.runtime = CoordinatorRuntime[TinyShard](
            "tiny",
            "__consumer_offsets",
            GROUP_RECORDS,
            self._make_shard,
            self.surroundings,
            load_buffer_bytes=lambda: self.load_buffer_bytes,
            codec=lambda: codec,
        )

    def _make_shard(self, context: ShardContext) -> TinyShard:
        # Loads stand still here while a test wants them to.
        assert self.loading.wait(60)
        return TinyShard(context, self.poison)

    def lead(self, log: Any, partition: int = 0, leader_epoch: int = 0) -> None:
        """Lead a partition, and wait until it is loaded."""
        self.runtime.leads(partition, leader_epoch, log)
        self.wait_for(ShardState.ACTIVE, partition)

    def wait_for(self, state: ShardState, partition: int = 0) -> None:
        wait_until(lambda: self.runtime.states().get(partition) is state, 60, f"partition {partition} is not {state}")

    def run_jobs(self) -> None:
        """Do what was left to other threads."""
        while self.jobs:
            self.jobs.pop(0)()

    def put(self, group: str, offset: int | None, **options: Any) -> Answers:
        answers = Answers()
        self.runtime.run(0, lambda shard: shard.put(group, offset, answers.reply, **options), answers.refuse)
        return answers

    def get(self, group: str) -> Answers:
        answers = Answers()
        self.runtime.run(0, lambda shard: shard.get(group, answers.reply), answers.refuse)
        return answers

    def offsets(self, partition: int = 0) -> dict[str, int]:
        (shard,) = [shard for shard in self.runtime.shards() if shard.context.partition == partition]
        return shard.offsets


class Answers:
    """What came of one operation."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.errors: list[ErrorCode] = []

    def reply(self, response: Any) -> None:
        self.replies.append(response)

    def refuse(self, error: BrokerError) -> None:
        self.errors.append(error.code)

    def end(self, error: BrokerError | None) -> None:
        if error is None:
            self.replies.append(None)
        else:
            self.errors.append(error.code)


def not_refused(error: BrokerError) -> NoReturn:
    """What a test passes on that expects an answer."""
    raise AssertionError("refused") from error


def answer_with(result: Result, shard: TinyShard) -> Result:
    """An operation, once its result is given, that needs nothing of its shard."""
    return result
