"""What a consumer is made of, and how its user's thread waits for the client's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Final, TypeVar

from kavka.client.api_errors import AuthorizationError, InvalidTopicError, KafkaTimeoutError, error_of
from kavka.client.client_thread import ClientThread
from kavka.client.cluster import Cluster
from kavka.client.consumer.buffer import FetchBuffer, News
from kavka.client.consumer.errors import ConcurrentUseError, WakeupError
from kavka.client.consumer.fetch_answers import FetchAnswers
from kavka.client.consumer.fetch_metrics import FetchMetrics
from kavka.client.consumer.fetcher import Fetcher, FetchSettings
from kavka.client.consumer.group.port import Assignments, GroupPort
from kavka.client.consumer.machine import ConsumerMachine
from kavka.client.consumer.member_metrics import MemberMetrics
from kavka.client.consumer.offset_lookup import OffsetLookups
from kavka.client.consumer.position_finding import PositionFinder
from kavka.client.consumer.positions import EARLIEST, LATEST, ResetPolicy
from kavka.client.consumer.questions import Questions
from kavka.client.consumer.stretches import Deserializers
from kavka.client.consumer.subscription import Subscription
from kavka.client.metadata import Metadata
from kavka.client.opening import MAX_ANSWER_BYTES, Opened, open_network, retry_backoff
from kavka.client.serialization import Deserializer, deserializer_of
from kavka.config.clients.consumer import ConsumerSettings

T = TypeVar("T")

AS_THE_SYSTEM_HAS_IT: Final = -1
"""Of the receive buffer, unless it is given: with Kafka's 64 KiB a megabyte comes in twenty pieces, each of which costs
as much as decoding some hundred records does."""
LONGEST_MS: Final = 2.0**53
_AROUND_RECORDS_BYTES: Final = 16 << 20
"""Of an answer to a fetch: partitions, aborted transactions, and what of a batch is more than was asked for."""
_LONGEST_FRAME_BYTES: Final = 2**31 - 1


class OneThread:
    """Lets one thread in at a time, again and again: callbacks may call the consumer that called them."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ConcurrentUseError("a consumer is for one thread at a time: another one is using it")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class Host:
    """What the group is given: a `GroupHost`."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core: Final = core
        self.assignments: Assignments = core.subscription

    def submit(self, call: Callable[[], Any]) -> None:
        self._core.thread.submit(call)

    def on_news(self) -> None:
        self._core.news.tell()

    def wait(self, future: Future[Any], deadline_ms: float) -> bool:
        return self._core.waited(future, deadline_ms, wakes=False)

    def now_ms(self) -> float:
        return self._core.now_ms()


class ConsumerCore:
    """Threads: the user's, one at a time (`in_use`); `thread` owns `opened`, `machine` and their parts."""

    def __init__(self, settings: ConsumerSettings, group_of: Callable[[ConsumerCore, Host], GroupPort | None]) -> None:
        self.settings: Final = settings
        self.in_use: Final = OneThread()
        self.news: Final = News()
        self.key_deserializer: Final = _deserializer(settings, is_key=True)
        self.value_deserializer: Final = _deserializer(settings, is_key=False)
        self.opened: Final[Opened] = open_network(
            settings,
            allow_auto_create=settings.allow_auto_create_topics,
            max_answer_bytes=max_answer_bytes(settings),
            receive_buffer_bytes=None if "receive.buffer.bytes" in settings.given else AS_THE_SYSTEM_HAS_IT,
        )
        self.metadata: Final[Metadata] = self.opened.metadata
        self.metrics: Final = FetchMetrics(self.opened.metrics)
        self.subscription: Final = Subscription(reset_policy(settings), self._wake, on_assigned=self.metrics.assigned)
        self.member_metrics: Final = MemberMetrics(self.opened.metrics, lambda: len(self.subscription.partitions))
        try:
            self.group: Final = group_of(self, Host(self))
        except BaseException:
            # Of the user's assignors: with a login there is a thread by now.
            self.opened.network.close()
            raise
        self.buffer: Final = FetchBuffer(
            self.subscription,
            max_bytes=settings.fetch_max_bytes,
            news=self.news,
            wake=self._wake,
            metrics=self.metrics,
            skip_corrupt=settings.kavka_skip_corrupt_batches,
            check_crcs=settings.check_crcs,
            deserializers=Deserializers(
                self.key_deserializer.deserialize if self.key_deserializer is not None else None,
                self.value_deserializer.deserialize if self.value_deserializer is not None else None,
            ),
        )
        self.lookups: Final = OffsetLookups(
            self.opened.network,
            self.metadata,
            is_read_committed=settings.isolation_level == "read_committed",
            retry_backoff_ms=settings.retry_backoff_ms,
            now_ms=self.now_ms,
        )
        self.questions: Final = Questions(self.opened.network, self.metadata.nodes, settings.retry_backoff_ms)
        self.thread: Final = ClientThread(
            f"kavka-consumer-{settings.client_id}",
            self.opened.network,
            self._machine(fetch_settings(settings)),
            metadata=self.metadata,
        )
        self._woken = False
        self._seen: Cluster | None = None
        self.metadata.listeners.append(lambda _cluster: self.news.tell())
        self.metadata.failure_listeners.append(self.news.tell)

    def _machine(self, settings: FetchSettings) -> ConsumerMachine:
        network, metadata, subscription, buffer = self.opened.network, self.metadata, self.subscription, self.buffer
        answers = FetchAnswers(
            subscription,
            buffer,
            retry_backoff(self.settings),
            request_metadata=metadata.request_update,
            learn_leaders=metadata.learn_leaders,
            preferred_for_ms=settings.metadata_max_age_ms,
        )
        fetcher = Fetcher(network, metadata, subscription, buffer, settings, answers, self.metrics, self.now_ms)
        finder = PositionFinder(
            network,
            metadata,
            subscription,
            buffer,
            self.lookups,
            answers,
            settings,
            committed=self.group,
            on_found=self.news.tell,
            now_ms=self.now_ms,
            wall_clock_ms=lambda: time.time() * 1000,
        )
        return ConsumerMachine(fetcher, finder, self.lookups, self.questions, self.group, self.news.tell)

    def now_ms(self) -> float:
        """The client's clock."""
        return time.monotonic() * 1000

    def deadline_ms(self, timeout_ms: float | None) -> float:
        """On the client's clock; None: by `default.api.timeout.ms`."""
        if timeout_ms is None:
            timeout_ms = self.settings.default_api_timeout_ms
        return self.now_ms() + min(timeout_ms, LONGEST_MS)

    def check(self) -> None:
        """Raises why the consumer can be used no more."""
        if self.thread.failure is not None:
            self.thread.check()

    def wakeup(self) -> None:
        self._woken = True
        self.news.tell()

    def rest(self, until_ms: float) -> None:
        """Wait for news. Raises WakeupError, or why the consumer has ended."""
        self.news.wait(until_ms - self.now_ms())
        self.raise_wakeup()
        self.check()

    def raise_wakeup(self) -> None:
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() ended this call")

    def waited(self, future: Future[Any], deadline_ms: float, *, wakes: bool = True) -> bool:
        """Whether it is done by the deadline. Raises WakeupError and AuthenticationError, unless `wakes` is False."""
        future.add_done_callback(lambda _future: self.news.tell())
        while not future.done():
            left_ms = deadline_ms - self.now_ms()
            if left_ms <= 0 or self.thread.failure is not None:
                return future.done()
            self.news.wait(left_ms)
            if wakes:
                self.raise_wakeup()
                refusal = self.metadata.take_refusal()
                if refusal is not None:
                    raise refusal
        return True

    def result_of(self, future: Future[T], deadline_ms: float, what: str) -> T:
        """Raises KafkaTimeoutError, WakeupError, why the consumer has ended, or what the future has."""
        if not self.waited(future, deadline_ms):
            self.check()
            raise KafkaTimeoutError(f"{what}: not done in time")
        return future.result()

    def ask(self, call: Callable[[Future[T]], None], deadline_ms: float, what: str) -> T:
        """Have `call` run by the client's thread with a future, and wait for that."""
        done: Future[T] = Future()
        self.thread.submit(lambda: call(done))
        return self.result_of(done, deadline_ms, what)

    def raise_metadata_errors(self) -> None:
        """What the metadata say of topics that are to be read, and time will not mend; or why there are none.

        Once for each snapshot.
        """
        self.metadata.raise_fatal()
        cluster = self.metadata.cluster
        if cluster is self._seen:
            return
        self._seen = cluster
        names = {partition.topic for partition in self.subscription.partitions}
        if self.group is not None:
            names |= self.group.subscription
        for name in names:
            topic = cluster.topics.get(name)
            if topic is not None and topic.error_code:
                error = error_of(topic.error_code, f"{name}: {error_of(topic.error_code)}")
                if isinstance(error, AuthorizationError | InvalidTopicError):
                    raise error

    def _wake(self) -> None:
        self.opened.network.wakeup()


def max_answer_bytes(settings: ConsumerSettings) -> int:
    """How large an answer may be: what is asked for, and what stands around it; for batches that are larger than what
    was asked for there is room too, as far as clients have any."""
    asked_bytes = max(settings.fetch_max_bytes, settings.max_partition_fetch_bytes)
    return min(max(asked_bytes + _AROUND_RECORDS_BYTES, MAX_ANSWER_BYTES), _LONGEST_FRAME_BYTES)


def reset_policy(settings: ConsumerSettings) -> ResetPolicy:
    """What `auto.offset.reset` says."""
    if settings.auto_offset_reset_by_ms is not None:
        return ResetPolicy(None, settings.auto_offset_reset_by_ms)
    return ResetPolicy({"earliest": EARLIEST, "latest": LATEST}.get(settings.auto_offset_reset))


def fetch_settings(settings: ConsumerSettings) -> FetchSettings:
    """What fetching goes by."""
    return FetchSettings(
        min_bytes=settings.fetch_min_bytes,
        max_bytes=settings.fetch_max_bytes,
        max_wait_ms=settings.fetch_max_wait_ms,
        max_partition_bytes=settings.max_partition_fetch_bytes,
        is_read_committed=settings.isolation_level == "read_committed",
        client_rack=settings.client_rack,
        retry_backoff_ms=settings.retry_backoff_ms,
        metadata_max_age_ms=settings.metadata_max_age_ms,
        request_timeout_ms=settings.request_timeout_ms,
    )


def _deserializer(settings: ConsumerSettings, *, is_key: bool) -> Deserializer | None:
    name = "key.deserializer" if is_key else "value.deserializer"
    setting = settings.key_deserializer if is_key else settings.value_deserializer
    return deserializer_of(setting, name, settings.given, is_key=is_key)
