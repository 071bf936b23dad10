"""Compaction's place in the broker: who looks for a filthy log, who has it cleaned, what is known of it afterwards.

Each of `log.cleaner.threads` threads looks for the filthiest log, has a worker process of its own clean it, and pauses
for `log.cleaner.backoff.ms` when none is filthy enough. Processes are started when there is something to clean, and
end when there was nothing for a while.
"""

import errno
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kavka.config.broker_config import BrokerConfig
from kavka.config.errors import SettingRefusedError
from kavka.config.thread_names import thread_name
from kavka.protocol.errors import BrokerError
from kavka.storage.cleaner.jobs import CleanedLog
from kavka.storage.cleaner.round_report import tell
from kavka.storage.cleaner.rounds import Outcome, Round, clean
from kavka.storage.cleaner.selection import CleanableLog, filthiest, look_at
from kavka.storage.cleaner.worker_process import Worker, WorkerDiedError, WorkerProcess
from kavka.storage.log_manager import LogManager
from kavka.storage.log_passes import paced, yield_interpreter
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.offset_index import CorruptIndexError
from kavka.storage.partition_log import PartitionLog

MOST_FAILURES: Final = 3
"""So many rounds in a row that ended for no good reason: the log isn't tried again."""
MOST_DOUBLINGS: Final = 5
"""Of the pause before a log is tried again, at each failure: a worker that dies may have been killed for memory."""
IDLE_S: Final = 60.0
"""A worker process without work ends after that; its memory is free as soon as a job ends."""
LEAST_PAUSE_MS: Final = 1000
"""A log of which a round failed isn't tried again sooner."""

_log: Final = logging.getLogger(__name__)


class LastRound(NamedTuple):
    """What the metrics tell of a thread's last round."""

    seconds: float
    result: CleanedLog


class Failures(NamedTuple):
    """What is remembered of a log whose last round failed."""

    log: PartitionLog
    in_a_row: int
    """Rounds in a row that ended for no good reason."""
    failed_s: float
    """When the last one failed (monotonic)."""
    pauses: int
    """So many times the pause between two rounds goes by before the next."""

    def waits(self, config: BrokerConfig, now_s: float) -> bool:
        """Whether it is too early for another round, by the settings of this moment."""
        pause_s = max(config.log_cleaner_backoff_ms, LEAST_PAUSE_MS) / 1000
        return now_s < self.failed_s + pause_s * self.pauses


class LogCleaner:
    """Compacts the logs of a broker. `start` and `stop` once each, by the thread that starts and stops the broker.

    Threads: the cleaner threads are its own. `_changed` wakes them; its lock guards everything that isn't Final, and is
    never held while a log is looked at or cleaned.
    """

    def __init__(
        self,
        logs: LogManager,
        config: BrokerConfig,
        *,
        now_ms: Callable[[], int],
        start_worker: Callable[[], Worker] = WorkerProcess,
        pause: Callable[[], object] = yield_interpreter,
        on_death: Callable[[BaseException], object] | None = None,
    ) -> None:
        """`on_death` is called by a cleaner thread that can't go on."""
        self._on_death: Final = on_death
        self._logs: Final = logs
        self._now_ms: Final = now_ms
        self._start_worker: Final = start_worker
        self._pause: Final = pause
        self._changed: Final = threading.Condition()
        self._config = config
        self._most_threads = config.log_cleaner_threads
        """Those beyond `log.cleaner.threads` are there for a change that was not decided yet, and look at no log."""
        self._started = self._stopping = False
        self._threads: dict[int, threading.Thread] = {}
        self._leaving: list[threading.Thread] = []
        """Surplus ones on their last steps, whose numbers are free for others."""
        self._workers: dict[int, Worker] = {}
        """By number of the thread; those that are at work are in `_busy`."""
        self._busy: set[int] = set()
        self._in_progress: set[TopicPartition] = set()
        self._failures: dict[TopicPartition, Failures] = {}
        self._uncleanable: dict[TopicPartition, PartitionLog] = {}
        self._last_rounds: dict[int, LastRound] = {}
        self._looked_at_ms = now_ms()
        self._filthiest_ratio = 0.0
        self._longest_delay_ms = 0

    def start(self) -> None:
        """Begin, unless `log.cleaner.enable` says not to."""
        with self._changed:
            self._started = self._config.log_cleaner_enable
            self._start_threads()

    def stop(self) -> None:
        """End the workers, in the middle of a round if need be, and wait for the threads."""
        with self._changed:
            self._stopping = True
            workers = list(self._workers.values())
            self._changed.notify_all()
        for worker in workers:
            worker.stop()
        for thread in (*self._threads.values(), *self._leaving):
            thread.join()

    def prepare(self, config: BrokerConfig) -> None:
        """Start the threads that `config` adds; they do nothing before it counts.

        Raises OSError where there cannot be so many; those that could be started are there until `keep_only`.
        """
        with self._changed:
            self._most_threads = max(self._most_threads, config.log_cleaner_threads)
            self._start_threads()

    def keep_only(self, configs: Sequence[BrokerConfig]) -> None:
        """End the threads that none of these configurations has."""
        with self._changed:
            self._most_threads = max(config.log_cleaner_threads for config in configs)
            self._changed.notify_all()

    def reconfigure(self, config: BrokerConfig, pending: Sequence[BrokerConfig] = ()) -> None:
        """The settings have changed: rates at once, the rest with the next round. What is `pending` keeps its threads.

        Raises OSError where there cannot be so many threads: those that are there follow.
        """
        self.keep_only([config, *pending])
        with self._changed:
            self._config = config
            try:
                self._start_threads()
            finally:
                self._changed.notify_all()
        self._share_rate()

    # What the metrics tell

    def uncleanable_partitions(self) -> list[PartitionLog]:
        """The logs that aren't compacted any more until the broker's next start."""
        with self._changed:
            uncleanable = list(self._uncleanable.items())
        return [log for key, log in uncleanable if self._logs.get(*key) is log]

    def uncleanable_bytes(self) -> int:
        """How much of them waits to be compacted."""
        waiting = (self._look(log) for log in self.uncleanable_partitions())
        return sum(each.cleanable_bytes for each in waiting if each is not None)

    def last_rounds(self) -> list[LastRound]:
        """The last round of each thread."""
        with self._changed:
            return list(self._last_rounds.values())

    @property
    def max_dirty_ratio(self) -> float:
        """Of all logs, when they were looked at last."""
        return self._filthiest_ratio

    @property
    def max_compaction_delay_ms(self) -> int:
        """The same: for how long a log's oldest dirty record has been there beyond its max.compaction.lag.ms."""
        return self._longest_delay_ms

    @property
    def looked_at_ms(self) -> int:
        """When the logs were looked at last."""
        return self._looked_at_ms

    @property
    def dead_threads(self) -> int:
        """Threads that ended though they should work."""
        threads = list(self._threads.items())
        return sum(not thread.is_alive() and self._goes_on(number) for number, thread in threads)

    # The threads

    def _start_threads(self) -> None:
        """As many as are configured or prepared; `_changed` held. Surplus ones end by themselves. Raises OSError."""
        if self._stopping or not self._started:
            return
        self._leaving = [thread for thread in self._leaving if thread.is_alive()]
        for number in range(self._most_threads):
            thread = self._threads.get(number)
            if thread is None or not thread.is_alive():
                name = thread_name(f"log-cleaner-{number}")
                try:
                    (thread := threading.Thread(target=self._run, args=(number,), name=name, daemon=True)).start()
                except RuntimeError as failure:
                    reason = f"cleaner thread {number} cannot be started: {failure}"
                    raise SettingRefusedError("log.cleaner.threads", errno.EAGAIN, reason) from failure
                self._threads[number] = thread

    def _run(self, number: int) -> None:
        try:
            self._work(number)
        except BaseException as error:
            _log.critical("a cleaner thread dies thread=%d", number, exc_info=error)
            if self._on_death is not None:
                self._on_death(error)
            self._end_worker(number)
            raise

    def _work(self, number: int) -> None:
        idle_since_s = time.monotonic()
        while not self._leaves(number):
            config = self._config
            found = self._take_filthiest() if number < config.log_cleaner_threads else None
            if found is not None:
                self._clean(number, found)
                idle_since_s = time.monotonic()
                continue
            self._rest(number, config, idle_since_s)

    def _rest(self, number: int, config: BrokerConfig, idle_since_s: float) -> None:
        """Wait for `log.cleaner.backoff.ms`, or until the settings are others than `config`.

        In steps: no lock can be waited on for as long as the setting may say, and a worker without work ends meanwhile.
        """
        until_s = time.monotonic() + max(config.log_cleaner_backoff_ms, 1) / 1000
        while (left_s := until_s - time.monotonic()) > 0:
            if time.monotonic() - idle_since_s > IDLE_S:
                self._end_worker(number)
            with self._changed:
                if not self._goes_on(number) or self._config is not config:
                    return
                self._changed.wait(min(left_s, IDLE_S))

    def _leaves(self, number: int) -> bool:
        """Whether the thread ends now, with its worker."""
        with self._changed:
            if self._goes_on(number):
                return False
            if not self._stopping:
                self._leaving.append(self._threads.pop(number))
            worker = self._workers.pop(number, None)
        if worker is not None:
            worker.stop()
        return True

    def _goes_on(self, number: int) -> bool:
        return not self._stopping and number < self._most_threads

    def _take_filthiest(self) -> CleanableLog | None:
        """The log to clean now; nobody else is given it until `_clean` has ended."""
        self._forget_deleted()
        looked_at = list(self._compacted_logs())
        self._looked_at_ms = self._now_ms()
        self._filthiest_ratio = max((each.dirty_ratio for each in looked_at), default=0.0)
        self._longest_delay_ms = max((each.compaction_delay_ms for each in looked_at), default=0)
        with self._changed:
            found = filthiest(each for each in looked_at if _key(each.log) not in self._in_progress)
            if found is not None:
                self._in_progress.add(_key(found.log))
        return found

    def _compacted_logs(self) -> Iterator[CleanableLog]:
        now_s = time.monotonic()
        for log in paced(self._logs.all_logs(), self._pause):
            if log.is_moving or not log.config.is_compacted:
                continue
            key = _key(log)
            with self._changed:
                failures = self._failures.get(key)
                waits = failures is not None and failures.waits(self._config, now_s)
                if waits or key in self._in_progress or self._uncleanable.get(key) is log:
                    continue
            if (found := self._look(log)) is not None:
                yield found

    def _forget_deleted(self) -> None:
        """What is known of logs that are gone; one of the same name has its own failures."""
        with self._changed:
            for key in [key for key, failures in self._failures.items() if self._logs.get(*key) is not failures.log]:
                del self._failures[key]
            for key in [key for key, log in self._uncleanable.items() if self._logs.get(*key) is not log]:
                del self._uncleanable[key]

    def _look(self, log: PartitionLog) -> CleanableLog | None:
        folder = log.folder  # of a log that moves meanwhile nobody can tell whose disk it was
        try:
            return look_at(log, self._now_ms())
        except (OSError, CorruptIndexError) as error:
            if not isinstance(error, FileNotFoundError) and log.folder == folder:
                reason = log.disk_failed("reading failed", error) if isinstance(error, OSError) else error
                _log.warning("a log can't be looked at for compaction partition=%s error=%s", log, reason)
            return None

    def _clean(self, number: int, found: CleanableLog) -> None:
        log, key = found.log, _key(found.log)
        started_s = time.monotonic()
        try:
            worker = self._worker(number)
            if worker is None:
                return
            ended = clean(found, worker, self._config, self._now_ms(), self._rate())
        except WorkerDiedError as error:
            self._end_worker(number)
            ended = Round(Outcome.DIED, reason=str(error))
        except (BrokerError, OSError) as error:
            # Told to the log directory; or the process could not be started.
            ended = Round(Outcome.GONE if log.deleting else Outcome.PASSED, reason=str(error))
        except Exception as error:  # noqa: BLE001 - a mistake here must cost this log its rounds, not the others
            _log.error("a round of compaction failed partition=%s", log, exc_info=error)
            ended = Round(Outcome.BROKEN, reason=repr(error))
        finally:
            with self._changed:
                self._in_progress.discard(key)
                self._busy.discard(number)
            self._share_rate()
        if not self._stopping:
            self._note(number, found, ended, time.monotonic() - started_s)

    def _note(self, number: int, found: CleanableLog, ended: Round, seconds: float) -> None:
        log, key = found.log, _key(found.log)
        if ended.result is not None:
            self._logs.checkpoint_clean_offsets(self._logs.directory_of(log))
            with self._changed:
                self._failures.pop(key, None)
                self._last_rounds[number] = LastRound(seconds, ended.result)
            tell(log, found.first_dirty_offset, ended.result, seconds)
            return
        if ended.outcome is Outcome.GONE:
            return
        with self._changed:
            before = self._failures.get(key)
            failed = 0 if before is None else before.in_a_row
            self._failures[key] = Failures(
                log,
                failed + (ended.outcome in (Outcome.BROKEN, Outcome.DIED)),
                time.monotonic(),
                2 ** min(failed, MOST_DOUBLINGS),
            )
            given_up = ended.outcome is Outcome.CORRUPT or (
                ended.outcome is Outcome.BROKEN and failed + 1 >= MOST_FAILURES
            )
            if given_up:
                self._uncleanable[key] = log
                del self._failures[key]
        if given_up:
            _log.error("a log is not compacted any more partition=%s-%d reason=%r", *key, ended.reason)
        else:
            _log.warning("a log could not be compacted, tried again partition=%s-%d reason=%r", *key, ended.reason)

    # Workers

    def _worker(self, number: int) -> Worker | None:
        """The thread's worker, at work from now on; None when everything is to stop. Raises OSError."""
        with self._changed:
            worker = self._workers.get(number)
        if worker is None:
            worker = self._start_worker()
        with self._changed:
            if not self._stopping:
                self._workers[number] = worker
                self._busy.add(number)
        if self._stopping:
            worker.stop()
            return None
        self._share_rate()
        return worker

    def _end_worker(self, number: int) -> None:
        with self._changed:
            worker = self._workers.pop(number, None)
        if worker is not None:
            worker.stop()

    def _rate(self) -> float:
        """What each of the workers may read and write a second, of those that are at work."""
        with self._changed:
            return self._config.log_cleaner_io_max_bytes_per_second / max(1, len(self._busy))

    def _share_rate(self) -> None:
        rate = self._rate()
        with self._changed:
            busy = [self._workers[number] for number in self._busy if number in self._workers]
        for worker in busy:
            worker.set_rate(rate)


def _key(log: PartitionLog) -> TopicPartition:
    return log.topic, log.partition
