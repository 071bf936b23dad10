"""The thread that loads shards, one after the other."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from kavka.config.thread_names import thread_name
from kavka.coordinator.ports import Shard
from kavka.coordinator.runtime.shard_runner import ShardRunner
from kavka.protocol.errors import BrokerError, ErrorCode

S = TypeVar("S", bound=Shard)

FIRST_RETRY_S: Final = 0.5
LONGEST_RETRY_S: Final = 60.0

log = logging.getLogger(__name__)


class Loader(Generic[S]):
    """Loads the shards that it is given, in order; one that fails is tried again, later each time.

    Threads: `load` by any thread, never waits. The thread starts with the first shard and is joined by `stop`;
    `_retries` is its own. `_changed` guards the other attributes; the queue holds a shard at most once.
    """

    def __init__(
        self, name: str, load_one: Callable[[ShardRunner[S]], None], thread_died: Callable[[BaseException], None]
    ) -> None:
        self._name = name
        self._load_one = load_one
        self._thread_died = thread_died
        self._changed = threading.Condition()
        self._queue: deque[ShardRunner[S] | Callable[[], object]] = deque()
        """Shards to load, and who is to be told when those before them are."""
        self._retries: dict[ShardRunner[S], tuple[float, float]] = {}
        """Shards that failed: (when to try again, after which pause)."""
        self._thread: threading.Thread | None = None
        self.stopping = False

    def load(self, runner: ShardRunner[S]) -> None:
        """Load that shard, as soon as those before it are. Raises RuntimeError where there cannot be a thread: the next
        one that is to be loaded brings it along.
        """
        with self._changed:
            if self.stopping:
                return
            self._queue.append(runner)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=thread_name(f"{self._name}-loader"), daemon=True)
                # Not noted before it runs: nobody would ever load anything, or could stop it.
                thread.start()
                self._thread = thread
            self._changed.notify()

    def after_queued(self, tell: Callable[[], object]) -> None:
        """Call `tell` when what waits to be loaded now has been tried: at once, or by the loader's thread.

        Never waits for it. A `stop` tells too. No lock may be held.
        """
        with self._changed:
            if self._thread is not None and not self.stopping:
                self._queue.append(tell)
                self._changed.notify()
                return
        tell()

    def stop(self) -> None:
        """Load nothing more; what is being loaded is given up. Joins the thread."""
        with self._changed:
            self.stopping = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        for queued in self._queue:
            if not isinstance(queued, ShardRunner):
                queued()
        self._queue.clear()

    def _run(self) -> None:
        try:
            while (runner := self._next()) is not None:
                if not isinstance(runner, ShardRunner):
                    runner()
                    continue
                if runner.gone:
                    continue
                try:
                    self._load_one(runner)
                    self._retries.pop(runner, None)
                except Exception as failure:
                    if _is_led_no_more(failure):
                        log.info("led no more while it is loaded name=%s partition=%d", self._name, runner.partition)
                    else:
                        log.exception("a log could not be loaded name=%s partition=%d", self._name, runner.partition)
                    self._try_again(runner)
        except BaseException as failure:
            self._thread_died(failure)
            raise

    def _next(self) -> ShardRunner[S] | Callable[[], object] | None:
        with self._changed:
            while not self.stopping:
                now_s = time.monotonic()
                for runner, (due_s, _) in list(self._retries.items()):
                    if runner.gone:
                        del self._retries[runner]
                    elif due_s <= now_s:
                        self._retries[runner] = (float("inf"), self._retries[runner][1])
                        self._queue.append(runner)
                if self._queue:
                    return self._queue.popleft()
                next_s = min((due_s for due_s, _ in self._retries.values()), default=float("inf"))
                self._changed.wait(None if next_s == float("inf") else max(next_s - now_s, 0))
            return None

    def _try_again(self, runner: ShardRunner[S]) -> None:
        runner.failed = True
        pause_s = min(self._retries.get(runner, (0.0, FIRST_RETRY_S / 2))[1] * 2, LONGEST_RETRY_S)
        self._retries[runner] = (time.monotonic() + pause_s, pause_s)


def _is_led_no_more(failure: Exception) -> bool:
    """Whether the partition has gone to another broker, of which the runtime is about to hear: that is no fault."""
    return isinstance(failure, BrokerError) and failure.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
