"""What a client knows of the cluster, and when it asks anew: by age, by need, for single topics, after a back-off."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kavka.client.api_errors import InvalidTopicError, error_of
from kavka.client.backoff import ExponentialBackoff
from kavka.client.bootstrap import Bootstrap
from kavka.client.cluster import Cluster
from kavka.client.errors import ClientClosedError
from kavka.client.kafka_error import AuthenticationError, FatalError, KafkaError
from kavka.client.metadata_update import LeaderAndEpoch, is_alike, next_cluster, with_leaders
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_LONGEST_NAME_BYTES: Final = 2**15 - 1

log = logging.getLogger(__name__)


class MetadataSettings(NamedTuple):
    """Times and ways, named after Kafka's settings; the defaults are Kafka's too. Immutable."""

    max_age_ms: float = 300_000
    """metadata.max.age.ms: asked anew even if nothing changed."""
    retry_backoff_ms: float = 100
    retry_backoff_max_ms: float = 1_000
    max_idle_ms: float = float("inf")
    """metadata.max.idle.ms: a topic that nobody has wanted for so long is forgotten."""
    allow_auto_create: bool = True
    """Whether asking may create a topic, where the broker's settings allow that too."""
    rebootstrap: bool = True
    """metadata.recovery.strategy: begin anew with the bootstrap servers when no known broker can be reached."""
    rebootstrap_trigger_ms: float = 300_000
    """metadata.recovery.rebootstrap.trigger.ms (KIP-1102): begin anew when there was no answer for so long."""


class Metadata:
    """Knows the cluster, and is a MetadataPort for the client that keeps it fresh.

    Versions: each request for metadata has a number, and the snapshot made of its answer has it as `version`. So what
    was wanted before a request was made is in any snapshot with a greater version than the last request's at that time:
    that is what `want` and `request_update` return.

    Threads: `cluster` is swapped whole, by the owner, and read by any. `_changed` guards what is wanted (`_wanted`,
    `_new`, `_awaited`, `_wants_all`, `_needs_all`, `_not_before_ms`), `_asked`, `_fatal` and `_closed_by`. The rest is
    the owner's.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        settings: MetadataSettings,
        *,
        wake: Callable[[], None],
        now_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    ) -> None:
        """`wake` gets the owner out of its wait, any thread calls it."""
        self._bootstrap: Final = bootstrap
        self._settings: Final = settings
        self._backoff: Final = ExponentialBackoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._wake: Final = wake
        self._now_ms: Final = now_ms
        self.cluster: Cluster = Cluster()
        self.listeners: Final[list[Callable[[Cluster], None]]] = []
        """Called on the owner with each new snapshot; filled before the client begins."""
        self.failure_listeners: Final[list[Callable[[], None]]] = []
        """Called on the owner when they will not come for good; filled before the client begins."""
        self._changed: Final = threading.Condition(threading.Lock())
        self._wanted: dict[str, float] = {}
        self._new: set[str] = set()
        """Not asked for yet."""
        self._awaited: dict[str, int] = {}
        """Topics nothing was heard of yet, with the version that must be exceeded for it."""
        self._wants_all = False
        self._needs_all = False
        self._asked = 0
        self._not_before_ms = 0.0
        self._fatal: KafkaError | None = None
        self._closed_by: KafkaError | None = None
        self._nodes: tuple[Node, ...] | None = None
        """None while the bootstrap servers are used."""
        self._former: tuple[Node, ...] | None = None
        """The brokers of before, while the bootstrap servers are used: tried again where these are gone, too."""
        self._is_lost = False
        """Whether nobody could be reached since the last answer."""
        self._asked_for: frozenset[str] | None = None
        """What the request that is out asks for alone; None for all that is wanted."""
        self._updated_ms: float | None = None
        self._attempting_since_ms: float | None = None
        self._failures = 0
        """Attempts in a row that failed, or brought nothing new though it was asked for."""
        self._was_needed = False

    def want(self, topics: Iterable[str]) -> int:
        """Know these topics from now on: the version that must be exceeded for news of them (see `wait_for`).

        For topics that are known it is below the present one. Again for a topic keeps it from being forgotten.
        Raises TypeError or InvalidTopicError for what no request can name: it would keep all others from being known.
        """
        now_ms = self._now_ms()
        version = -1
        with self._changed:
            known = self.cluster.topics
            for topic in topics:
                if topic not in known:
                    check_name(topic)
                self._wanted[topic] = now_ms
                if topic in known:
                    continue
                if topic not in self._awaited:
                    self._awaited[topic] = self._asked
                    self._new.add(topic)
                version = max(version, self._awaited[topic])
            if version < 0:
                return self.cluster.version - 1
            if self._failures == 0:
                self._not_before_ms = 0.0
        self._wake()
        return version

    @contextmanager
    def wanting(self, topics: Collection[str]) -> Iterator[None]:
        """As `want`, for so long: one that is gone would be asked for on and on, and be created anew by that."""
        with self._changed:
            borrowed = set(topics) - self._wanted.keys()
        self.want(topics)
        try:
            yield
        finally:
            with self._changed:
                self._forget(borrowed)

    def want_only(self, topics: Collection[str]) -> int:
        """As `want`, but forget all others."""
        for topic in topics:
            check_name(topic)
        with self._changed:
            self._wants_all = False
            self._forget(self._wanted.keys() - set(topics))
        return self.want(topics)

    def want_all(self) -> int:
        """Know all topics from now on, until `want_only`: the version that must be exceeded for that."""
        with self._changed:
            if self._wants_all:
                return self.cluster.version - 1
            self._wants_all = True
        return self.request_update()

    def request_update(self) -> int:
        """Have all that is wanted fetched anew, as soon as the back-off allows: the version that must be exceeded."""
        with self._changed:
            is_first = not self._needs_all
            self._needs_all = True
            version = self._asked
        if is_first:
            self._wake()
        return version

    def wait_for(self, version: int, deadline_ms: float) -> bool:
        """Wait until `cluster.version` exceeds `version`; False when the deadline (on the client's clock) comes first.

        Not on the owner's thread. Raises what keeps the metadata from coming for good: once, so that who tries again
        waits again. Raises ClientClosedError, or why else the client has ended.
        """
        with self._changed:
            while self.cluster.version <= version:
                if self._closed_by is not None:
                    raise type(self._closed_by)(*self._closed_by.args) from self._closed_by.__cause__
                if self._fatal is not None:
                    fatal, self._fatal = self._fatal, None
                    raise fatal
                left_ms = deadline_ms - self._now_ms()
                if left_ms <= 0:
                    return False
                self._changed.wait(min(left_ms / 1000, threading.TIMEOUT_MAX))
            return True

    def raise_fatal(self) -> None:
        """Raise what keeps the metadata from coming for good, once, for who does not wait for them. Any thread."""
        if self._fatal is not None:
            with self._changed:
                fatal, self._fatal = self._fatal, None
            if fatal is not None:
                raise fatal

    @property
    def refusal(self) -> AuthenticationError | None:
        """Why brokers do not let the client in, until one does or somebody was told. Any thread."""
        fatal = self._fatal
        return fatal if isinstance(fatal, AuthenticationError) else None

    def take_refusal(self) -> AuthenticationError | None:
        """As `refusal`, and whoever asks tells those who have to know. Any thread."""
        if self._fatal is None:
            return None
        with self._changed:
            refusal = self.refusal
            if refusal is not None:
                self._fatal = None
            return refusal

    def age_s(self) -> float:
        """How long ago all that is wanted was last described; NaN before the first time. Any thread."""
        updated_ms = self._updated_ms
        return float("nan") if updated_ms is None else (self._now_ms() - updated_ms) / 1_000

    def close(self, failure: KafkaError | None = None) -> None:
        """Nobody waits any longer: who does, and who will, gets `failure`."""
        with self._changed:
            self._closed_by = failure or ClientClosedError("the client was closed")
            self._changed.notify_all()

    def learn_leaders(
        self, leaders: Mapping[TopicPartition, LeaderAndEpoch], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Take leaders that an error named, where they are newer by epoch (KIP-951): the partitions that moved.

        `cluster` is another object then, of the same `version`. On the owner's thread.
        """
        cluster, changed = with_leaders(self.cluster, leaders, list(nodes))
        if changed:
            if self._nodes is not None:
                # While the client begins anew it asks its bootstrap servers.
                self._nodes = tuple(cluster.nodes.values())
            self._publish(cluster)
        return changed

    # What the network client asks, on the owner's thread.

    def nodes(self) -> tuple[Node, ...]:
        """The brokers, or what the client begins with."""
        return self._bootstrap.nodes() if self._nodes is None else self._nodes

    def due_in_ms(self, now_ms: float) -> float:
        """0 when something is needed or old and the back-off is over. Read without the lock: a `want` wakes."""
        due_ms = float("inf")
        if self._needs_all or self._new:
            due_ms = now_ms
        elif self._updated_ms is not None:
            due_ms = self._updated_ms + self._settings.max_age_ms
        due_in_ms = max(due_ms - now_ms, self._not_before_ms - now_ms, 0.0)
        if due_in_ms == 0 and self._nodes is not None:
            self._look_back(now_ms)
        return due_in_ms

    def unreachable(self, now_ms: float) -> bool:
        """No known broker can be asked: begin anew (KIP-899), and where that was tried, go on with those of before.

        All brokers may have failed at one moment and be well at the next, and addresses that a client began with may
        be nobody's by then: Kafka's client keeps to these for ever.
        """
        if not self._settings.rebootstrap:
            return False
        if self._nodes is None:
            self._nodes, self._former = self._former, None
            return self._nodes is not None
        self._begin_anew("no broker can be reached")
        return True

    def request(self) -> MetadataRequest:
        """All that is wanted, or the new topics alone where nothing else is needed."""
        now_ms = self._now_ms()
        settings = self._settings
        with self._changed:
            self._asked += 1
            is_old = self._updated_ms is None or now_ms >= self._updated_ms + settings.max_age_ms
            is_partial = bool(self._new) and not self._needs_all and not self._wants_all and not is_old
            self._was_needed = self._needs_all
            self._forget_idle(now_ms)
            wanted = self._new if is_partial else self._wanted
            self._asked_for = frozenset(wanted) if is_partial else None
            asks_all = self._wants_all and not is_partial
            topics = None if asks_all else [MetadataRequestTopic(name=topic) for topic in sorted(wanted)]
            self._new.clear()
            if not is_partial:
                self._needs_all = False
        return MetadataRequest(topics=topics, allow_auto_topic_creation=settings.allow_auto_create)

    def updated(self, response: Any, now_ms: float) -> None:
        """An answer, which may be an error too."""
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self._settings.rebootstrap:
            self._begin_anew("a broker asks for it")
            # It, and those it knows, are of another cluster.
            self._former = None
            self._again(now_ms)
            return
        if response.error_code or not response.brokers:
            log.info("no metadata error_code=%d brokers=%d", response.error_code, len(response.brokers))
            self._again(now_ms)
            return
        old = self.cluster
        is_partial = self._asked_for is not None
        with self._changed:
            if self._wants_all:
                kept: Collection[str] = old.topics.keys() if is_partial else ()
            else:
                kept = old.topics.keys() & self._wanted.keys()
            self._awaited = {topic: version for topic, version in self._awaited.items() if version >= self._asked}
        _warn(old, [topic for topic in response.topics if topic.name in self._wanted])
        cluster, is_incomplete = next_cluster(old, response, self._asked, kept)
        self._nodes = tuple(cluster.nodes.values())
        self._attempting_since_ms = None
        self._is_lost = False
        if not is_partial:
            self._updated_ms = now_ms
        is_in_vain = (is_incomplete or self._was_needed) and is_alike(old, cluster)
        self._failures = self._failures + 1 if is_in_vain else 0
        with self._changed:
            self._not_before_ms = now_ms + self._backoff.delay_ms(max(self._failures, 1))
            self._needs_all |= is_incomplete
            self._fatal = None
        self._publish(cluster)

    def failed(self, error: KafkaError, now_ms: float) -> None:
        """No answer: again after the back-off, from the start if it has gone on for too long."""
        log.info("no metadata error=%r", str(error))
        if isinstance(error, FatalError):
            with self._changed:
                self._fatal = error
                self._changed.notify_all()
            for listener in self.failure_listeners:
                listener()
        self._again(now_ms)

    def _again(self, now_ms: float) -> None:
        """What was asked for is still needed."""
        self._failures += 1
        with self._changed:
            if self._asked_for is None:
                self._needs_all = True
            else:
                self._new |= self._asked_for & self._wanted.keys()
            self._not_before_ms = now_ms + self._backoff.delay_ms(self._failures)

    def _look_back(self, now_ms: float) -> None:
        """Metadata are due: how long have they been? From the start, if it is too long (KIP-1102)."""
        settings = self._settings
        if self._attempting_since_ms is None:
            self._attempting_since_ms = now_ms
        elif settings.rebootstrap and now_ms - self._attempting_since_ms >= settings.rebootstrap_trigger_ms:
            self._begin_anew("there was no answer for long")

    def _begin_anew(self, reason: str) -> None:
        log.log(logging.DEBUG if self._is_lost else logging.INFO, "back to the bootstrap servers reason=%r", reason)
        self._is_lost = True
        self._nodes, self._former = None, self._nodes
        self._attempting_since_ms = None
        self._bootstrap.begin()

    def _forget_idle(self, now_ms: float) -> None:
        oldest_ms = now_ms - self._settings.max_idle_ms
        self._forget([topic for topic, wanted_ms in self._wanted.items() if wanted_ms < oldest_ms])

    def _forget(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._wanted.pop(topic, None)
            self._new.discard(topic)
            self._awaited.pop(topic, None)

    def _publish(self, cluster: Cluster) -> None:
        with self._changed:
            self.cluster = cluster
            self._changed.notify_all()
        for listener in self.listeners:
            listener(cluster)


def _warn(old: Cluster, topics: Iterable[Any]) -> None:
    """Of those that there are no metadata of: once, not with each answer. One without a leader will have one soon."""
    for each in topics:
        before = old.topics.get(each.name)
        is_news = before is None or before.error_code != each.error_code
        if not is_news or each.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            continue
        if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # What a producer's first record brings into being is not there at the first answer either.
            log.warning("not there, or not there yet; asked for again topic='%s'", each.name)
        else:
            log.warning("no metadata of topic='%s' error=%r", each.name, str(error_of(each.error_code)))


def check_name(topic: Any) -> None:
    """Raises TypeError or InvalidTopicError for what no request can name."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name is text, not {type(topic).__name__}")
    try:
        is_short = len(topic.encode()) <= _LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        is_short = False
    if not is_short:
        raise InvalidTopicError(f"no request can name topic {topic[:80]!r}")
