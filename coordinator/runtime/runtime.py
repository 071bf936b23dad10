"""The shards of one internal topic on this broker: who serves, who loads, and which operation goes where."""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, Generic, TypeVar

from kavka.coordinator.ports import InternalLog, Shard, ShardContext, Surroundings
from kavka.coordinator.runtime.loader import Loader
from kavka.coordinator.runtime.loading import Slices, replay_log
from kavka.coordinator.runtime.record_decoding import RecordDecoder
from kavka.coordinator.runtime.replies import Refused
from kavka.coordinator.runtime.result import Producer, Result
from kavka.coordinator.runtime.shard_runner import EndReply, ShardRunner, ShardState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.internal.record_codec import RecordTypes
from kavka.protocol.records.batch import Codec

S = TypeVar("S", bound=Shard)
T = TypeVar("T")

log = logging.getLogger(__name__)


class LoadTimes:
    """How long loads took, in ms. Written by the loader's thread, read by any."""

    __slots__ = ("count", "longest_ms", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.longest_ms = 0.0

    def note(self, took_ms: float) -> None:
        self.count += 1
        self.total_ms += took_ms
        self.longest_ms = max(self.longest_ms, took_ms)


class CoordinatorRuntime(Generic[S]):
    """Runs the shards of one internal topic.

    Threads: any. `_lock` guards `_resigned`. `_runners` is replaced whole under it, and read without it; `leads` and
    `resigns` never wait for a shard or the disk, so that they may be called under the locks of whoever gives out
    leaderships.
    """

    def __init__(
        self,
        name: str,
        topic: str,
        record_types: RecordTypes,
        make_shard: Callable[[ShardContext], S],
        surroundings: Surroundings,
        *,
        load_buffer_bytes: Callable[[], int],
        codec: Callable[[], int] = lambda: Codec.NONE,
    ) -> None:
        self.name: Final = name
        self.topic: Final = topic
        self.load_times: Final = LoadTimes()
        self._record_types = record_types
        self._make_shard = make_shard
        self._surroundings = surroundings
        self._load_buffer_bytes = load_buffer_bytes
        self._codec = codec
        self._lock = threading.Lock()
        self._runners: dict[int, ShardRunner[S]] = {}
        self._resigned: dict[int, ShardRunner[S]] = {}
        """Who served a partition last that nobody serves now: it may still be at something."""
        self._loader: Final = Loader[S](name, self._load, surroundings.thread_died)
        self._topics_changed = False
        self._stopped = False

    def run(self, partition: int, operation: Callable[[S], Result], refused: Refused) -> None:
        """Carry out an operation on a shard; see `ShardRunner.run`. No lock may be held."""
        runner = self._runners.get(partition)
        if runner is None:
            refused(BrokerError(ErrorCode.NOT_COORDINATOR))
        else:
            runner.run(operation, refused)

    def run_at_once(self, partition: int, operation: Callable[[S], Result]) -> int | None:
        """Carry out a decision of records alone, if that is possible at once; see `ShardRunner.run_at_once`."""
        runner = self._runners.get(partition)
        return None if runner is None else runner.run_at_once(operation)

    def ask(self, partition: int, operation: Callable[[S], T]) -> T | None:
        """What a shard says at once, if it serves; see `ShardRunner.ask`."""
        runner = self._runners.get(partition)
        return None if runner is None else runner.ask(operation)

    def run_all(self, operation: Callable[[S], Result], refused: Refused) -> int:
        """Carry out an operation on each shard that serves; how many they were.

        `refused` is called for each shard that refuses, and for each that should serve but is not loaded yet.
        """
        count = 0
        for runner in list(self._runners.values()):
            count += runner.state is ShardState.ACTIVE
            runner.run(operation, refused)
        return count

    def end_transaction(
        self,
        partition: int,
        producer: Producer,
        coordinator_epoch: int,
        committed: bool,
        reply: EndReply,
        transaction_version: int = 0,
        is_withdrawn: Callable[[], bool] | None = None,
    ) -> None:
        """Write the marker that ends a producer's transaction to a partition, and have its shard take it in.

        Unless `is_withdrawn()` by then, which is asked under the shard's lock: NOT_COORDINATOR.
        `reply(None)` when it is committed; `reply(error)`: nothing was written, or it is not known to be committed.
        """
        runner = self._runners.get(partition)
        if runner is None:
            reply(BrokerError(ErrorCode.NOT_COORDINATOR))
        else:
            runner.end_transaction(producer, coordinator_epoch, committed, reply, transaction_version, is_withdrawn)

    def leads(self, partition: int, leader_epoch: int, internal_log: InternalLog) -> None:
        """This broker leads that partition: load its shard. Never waits."""
        with self._lock:
            if self._stopped:
                return
            old = self._runners.get(partition)
            if old is not None and not old.gone and old.leader_epoch <= leader_epoch and old.log is internal_log:
                # It led before, and goes on: what memory says still is what the log says.
                old.leader_epoch = leader_epoch
                return
            runner = self._new_runner(partition, leader_epoch, internal_log, old)
        self._retire(old)
        self._loader.load(runner)

    def resigns(self, partition: int) -> None:
        """This broker leads that partition no more. Never waits: what waits there is answered by another thread."""
        with self._lock:
            old = self._runners.get(partition)
            if old is not None:
                self._resigned[partition] = old
            self._runners = {number: runner for number, runner in self._runners.items() if number != partition}
        self._retire(old)

    def after_loads(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the shards that wait to be loaded now have been tried; see `Loader.after_queued`."""
        self._loader.after_queued(tell)

    def topics_changed(self) -> None:
        """Topics came, went or grew: tell the shards, soon. Never waits."""
        with self._lock:
            if self._topics_changed or self._stopped:
                return
            self._topics_changed = True
        self._surroundings.execute(self._tell_of_topics)

    def states(self) -> dict[int, ShardState]:
        """The partitions that this broker leads, and where their shards stand."""
        return {number: runner.state for number, runner in self._runners.items()}

    def shard(self, partition: int) -> S | None:
        """The shard that serves that partition, for looking at it without its lock; None if it does not serve."""
        runner = self._runners.get(partition)
        return None if runner is None else runner.shard

    def shards(self) -> list[S]:
        """The shards that serve, for reading counts off them without their locks."""
        return [shard for runner in self._runners.values() if (shard := runner.shard) is not None]

    def stop(self) -> None:
        """Answer what waits and end the shards; nothing is loaded any more. Joins the loader's thread."""
        with self._lock:
            self._stopped = True
            runners, self._runners = self._runners, {}
        for runner in runners.values():
            runner.gone = True
        self._loader.stop()
        for runner in runners.values():
            runner.retire()

    def _retire(self, runner: ShardRunner[S] | None) -> None:
        if runner is not None:
            # At once, so that nothing is appended in its name; its lock is for a thread that may wait.
            runner.gone = True
            self._surroundings.execute(runner.retire)

    def _new_runner(
        self, partition: int, leader_epoch: int, internal_log: InternalLog, old: ShardRunner[S] | None
    ) -> ShardRunner[S]:
        """Put another runner in the place of `old`; it is to be loaded. Under `_lock`."""
        runner = ShardRunner[S](
            partition, leader_epoch, internal_log, self._surroundings, codec=self._codec, broken=self._reload
        )
        runner.before = self._resigned.pop(partition, None) if old is None else old
        self._runners = {**self._runners, partition: runner}
        return runner

    def _reload(self, broken: ShardRunner[S]) -> None:
        """A shard's memory can't be trusted: another one takes its place, unless the leadership has gone on."""
        runner = None
        with self._lock:
            # One step: a leadership that came or went between the look and the change would be undone by it.
            if self._runners.get(broken.partition) is broken:
                runner = self._new_runner(broken.partition, broken.leader_epoch, broken.log, broken)
        broken.retire()
        if runner is not None:
            self._loader.load(runner)

    def _load(self, runner: ShardRunner[S]) -> None:
        """On the loader's thread."""
        started_s = time.monotonic()
        # What they are just appending belongs to what is read now. There are several where leadership came and went
        # faster than shards are loaded: those in between never served, but know who did.
        before = runner.before
        while before is not None:
            before.retire()
            before = before.before
        runner.before = None
        shard = self._make_shard(runner)
        loaded = replay_log(
            runner.log,
            shard,
            RecordDecoder(self._record_types),
            self._load_buffer_bytes(),
            lambda: not runner.gone,
            Slices(),
        )
        if loaded is None:
            return
        runner.activate(shard)
        took_ms = (time.monotonic() - started_s) * 1000
        self.load_times.note(took_ms)
        level = logging.INFO if loaded.records else logging.DEBUG
        log.log(
            level,
            "loaded topic=%s partition=%d records=%d unknown=%d bytes=%d ms=%.0f",
            self.topic,
            runner.partition,
            loaded.records,
            loaded.unknown_records,
            loaded.bytes,
            took_ms,
        )

    def _tell_of_topics(self) -> None:
        with self._lock:
            self._topics_changed = False
        for runner in list(self._runners.values()):
            if runner.state is ShardState.ACTIVE:
                runner.run(lambda shard: shard.topics_changed(), partial(_not_told, runner.partition))


def _not_told(partition: int, error: BrokerError) -> None:
    log.info("a shard was not told of topics partition=%d error=%r", partition, str(error))
