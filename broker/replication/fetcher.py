"""One thread that copies partitions from one broker: fetch, append, cut, and again."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from kavka.broker.replication import copying
from kavka.broker.replication.copying import Outcome
from kavka.broker.replication.fetch_state import FetchState, Verdict, judge, moved, reset_by_end, reset_by_start
from kavka.broker.replication.followed_partitions import FetchPlan, Followed, FollowedPartitions, Key, position_of
from kavka.broker.replication.leader_port import EARLIEST, LATEST, LeaderPort, LeaderUnreachableError, known_code
from kavka.broker.replication.proving import Proofs
from kavka.broker.replication.recurrence import Recurrence
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse, PartitionData
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.broker.replication.throttle import ReplicationThrottle

log: Final = logging.getLogger(__name__)


class FetcherCounts:
    """Totals for the metrics: written by the fetcher's thread alone, read by any."""

    __slots__ = ("bytes_in", "failed_fetches", "fetches")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.fetches = 0
        self.failed_fetches = 0


class Fetcher:
    """Follows partitions that one broker leads.

    `on_bytes` hears how many bytes of records were appended, `on_failed(followed)` of a partition that cannot be
    followed any more. `backoff_ms()`: `replica.fetch.backoff.ms`. `on_death` hears of an exception that nobody
    expected: without this thread its partitions would fall behind unseen.

    Threads: `step` and all it calls run on this thread (or a test's); `partitions` guards itself; `begin_stop` and
    `is_stopping` by any.
    """

    def __init__(
        self,
        name: str,
        leader: LeaderPort,
        *,
        backoff_ms: Callable[[], int],
        throttle: "ReplicationThrottle | None" = None,
        on_bytes: Callable[[int], object] = lambda size_bytes: None,
        on_failed: Callable[[Followed], None] = lambda followed: None,
        on_death: Callable[[BaseException], None] | None = None,
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        self.name: Final = name
        self.partitions: Final = FollowedPartitions(throttle)
        self.counts: Final = FetcherCounts()
        self.is_stopping = False
        self._leader: Final = leader
        self._backoff_ms: Final = backoff_ms
        self._throttle: Final = throttle
        self._on_bytes: Final = on_bytes
        self._on_failed: Final = on_failed
        self._on_death: Final = on_death
        self._now_ms: Final = now_ms
        self._orders_seen = 0
        self._proofs: Final = Proofs(leader, self.partitions.follows, backoff_ms, now_ms)
        self._unanswered: Final = Recurrence()
        self._refusals: Final = Recurrence()
        self._is_refused = False
        """Whether the leader refused the last fetch whole."""
        self._thread: Final = threading.Thread(target=self._run, name=thread_name(name), daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def has_begun(self) -> bool:
        """Whether its thread was started: where there are no threads to be had, `start` may be called again."""
        return self._thread.ident is not None

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def begin_stop(self) -> None:
        """End soon. Any thread; does not wait."""
        self.is_stopping = True
        self._leader.wake()
        with self.partitions.changed:
            self.partitions.changed.notify_all()

    def join(self) -> None:
        """Wait until the thread has ended, if it was ever started."""
        if self._thread.ident is not None:
            self._thread.join()

    def step(self) -> bool:
        """One round: cut what has to be cut, fetch, and take the answer. False: there was nobody to fetch for."""
        self._orders_seen = self.partitions.orders
        for followed in self.partitions.truncating():
            self._cut(followed, partial(copying.cut_to_high_watermark, followed))
        plan = self.partitions.plan(self._now_ms())
        if plan is None:
            return False
        try:
            answer = self._leader.fetch(plan)
            self.counts.fetches += 1
            if self._unanswered.count:
                log.info("the leader answers again fetcher=%s unanswered=%d", self.name, self._unanswered.end())
            self._take(plan, answer)
        except LeaderUnreachableError as failure:
            self.counts.failed_fetches += 1
            self.partitions.lost()
            if not self.is_stopping:
                # A dead leader is asked each second until its session ends, by each fetcher.
                if self._unanswered.is_worth_telling():
                    count = self._unanswered.count
                    log.info("no answer fetcher=%s in_a_row=%d error=%r", self.name, count, str(failure))
                self._wait_out()
        return True

    def _run(self) -> None:
        try:
            while not self.is_stopping:
                if not self.step():
                    self.partitions.wait(
                        self._now_ms(), self._backoff_ms(), self._orders_seen, lambda: self.is_stopping
                    )
        except BaseException as failure:
            if self._on_death is None:
                raise
            self._on_death(failure)
        finally:
            self._leader.close()

    def _wait_out(self) -> None:
        """Let the leader be for a while: all of its partitions have the same trouble.

        A new order to follow it ends that: the controller believes that it lives.
        """
        self.partitions.wait_out(self._backoff_ms(), self._orders_seen, lambda: self.is_stopping)

    def _take(self, plan: FetchPlan, answer: FetchResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            self.partitions.refused(answer.error_code)
            is_everyday = not self._is_refused and answer.error_code in _SESSION_ERRORS
            self._is_refused = True
            if is_everyday:
                # A session is gone, and a full fetch the cure.
                return
            if self._refusals.is_worth_telling():
                count, code = self._refusals.count, known_code(answer.error_code)
                log.warning("fetch refused fetcher=%s in_a_row=%d error=%s", self.name, count, code.name)
            self._wait_out()
            return
        if self._is_refused:
            self._is_refused = False
            self._refusals.end()
        self.partitions.answered(answer.session_id)
        out_of_range: list[Followed] = []
        for key, part in _parts(answer, self.partitions):
            with self.partitions.steps:
                asked = self.partitions.asked_for(key)
                if asked is None:
                    continue
                followed, state = asked
                verdict = judge(part)
                if verdict is Verdict.RESET:
                    out_of_range.append(followed)
                    continue
                try:
                    self._do(verdict, followed, state, part)
                except Exception:
                    # One partition's trouble, which the others of this broker are not to share.
                    log.exception("cannot follow log=%s", followed.log)
                    self._settle(followed, Outcome.FAILED)
            if verdict is Verdict.APPEND:
                followed.partition.appended()
        if out_of_range:
            self._reset(out_of_range)
        self._proofs.prove()

    def _do(self, verdict: Verdict, followed: Followed, state: FetchState, part: PartitionData) -> None:
        if verdict is Verdict.APPEND:
            self._append(followed, state, part)
        elif verdict is Verdict.TRUNCATE:
            self._settle(followed, copying.cut_to_common_history(followed, part))
        elif verdict is Verdict.FAIL:
            # The leader has heard of the next epoch before this broker: its order is under way.
            log.info("epoch is over, awaiting the controller log=%s epoch=%d", followed.log, state.leader_epoch)
            self._settle(followed, Outcome.FAILED)
        else:
            self._tell_once(followed, "fetch error", known_code(part.error_code))
            self._settle(followed, Outcome.RETRY)

    def _append(self, followed: Followed, state: FetchState, part: PartitionData) -> None:
        outcome = copying.append(followed, state.fetch_offset, part)
        if outcome is not Outcome.MOVED:
            self._settle(followed, outcome)
            return
        size_bytes = len(part.records) if part.records else 0
        position = position_of(followed.log)
        lag = max(part.high_watermark - position.end_offset, 0)
        new_state = moved(state, position, lag)
        if new_state != state:
            self.partitions.advance(followed, new_state, to_end=size_bytes > 0)
        if size_bytes:
            followed.told_error = None
            self.counts.bytes_in += size_bytes
            self._on_bytes(size_bytes)
            if self._throttle is not None:
                self._throttle.record(followed.log, size_bytes)
        self._proofs.agreed(followed)

    def _tell_once(self, followed: Followed, what: str, code: ErrorCode) -> None:
        """Log why a partition has to wait, not each time that it is tried again."""
        if followed.told_error is not code:
            followed.told_error = code
            log.info("%s log=%s error=%s", what, followed.log, code.name)

    def _reset(self, hit: list[Followed]) -> None:
        """Ask where the leader's logs end, and where they begin, and come back between the two."""
        ends = self._leader.offsets({each.key: each.state.leader_epoch for each in hit}, LATEST)
        left = []
        for followed, end_offset in self._found(hit, ends):
            what = reset_by_end(end_offset, position_of(followed.log))
            if what is None:
                left.append(followed)
            else:
                self._cut(followed, partial(copying.reset, followed, what))
        if left:
            starts = self._leader.offsets({each.key: each.state.leader_epoch for each in left}, EARLIEST)
            for followed, start_offset in self._found(left, starts):
                what = reset_by_start(start_offset, position_of(followed.log))
                self._cut(followed, partial(copying.reset, followed, what))

    def _found(
        self, asked: list[Followed], answers: Mapping[Key, tuple[ErrorCode, int]]
    ) -> Iterator[tuple[Followed, int]]:
        for followed in asked:
            code, offset = answers.get(followed.key, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            if code == ErrorCode.NONE and offset >= 0:
                yield followed, offset
            else:
                self._tell_once(followed, "the leader's range is not known", code)
                outcome = Outcome.FAILED if code == ErrorCode.FENCED_LEADER_EPOCH else Outcome.RETRY
                self._cut(followed, partial(Outcome, outcome))

    def _cut(self, followed: Followed, cut: Callable[[], Outcome]) -> None:
        """Have the log end or begin elsewhere, unless the partition was handed to somebody else meanwhile."""
        with self.partitions.steps:
            if self.partitions.follows(followed):
                try:
                    self._settle(followed, cut())
                except Exception:
                    # One partition's trouble, which the others of this broker are not to share.
                    log.exception("cannot follow log=%s", followed.log)
                    self._settle(followed, Outcome.FAILED)

    def _settle(self, followed: Followed, outcome: Outcome) -> None:
        """Have the partition go on from where its log stands, now or after the back-off, or not at all."""
        if outcome is Outcome.FAILED:
            if self.partitions.give_up(followed):
                self._on_failed(followed)
            return
        self.partitions.advance(followed, moved(followed.state, position_of(followed.log)))
        if outcome is not Outcome.MOVED:
            self.partitions.pause(followed, self._now_ms() + self._backoff_ms())


_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


def _parts(answer: FetchResponse, partitions: FollowedPartitions) -> Iterator[tuple[Key, PartitionData]]:
    """The answer's partitions by name; those of topics that are not followed any more are left out."""
    for topic in answer.responses:
        name = topic.topic if topic.topic_id == ZERO_UUID else partitions.name_of(topic.topic_id)
        if name is None:
            continue
        for part in topic.partitions:
            yield (name, part.partition_index), part
