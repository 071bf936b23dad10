"""What the coordinators need of the rest of the broker, which passes it in."""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from kavka.config.broker_config import BrokerConfig
    from kavka.config.group_config import GroupConfig
    from kavka.coordinator.runtime.result import CoordinatorRecord, Producer, Result
    from kavka.protocol.errors import BrokerError


class InternalLog(Protocol):
    """One partition of an internal topic, led by this broker. Any thread reads; its shard appends, under its lock."""

    def append(self, batch: bytearray, leader_epoch: int, transaction_version: int = 0, guard: int = 0) -> int:
        """Write one batch, all or nothing; gives the offset behind it. `transaction_version`: of an end marker.

        `guard`: of a producer's batch, see `Result`. Raises BrokerError with the log's own error: nothing was written
        then. NOT_LEADER_OR_FOLLOWER also if this broker has not led the partition ever since that epoch.
        """

    def append_plain(self, batch: bytearray, leader_epoch: int, records: int, timestamp_ms: int) -> int:
        """As `append`, of a batch that needs no looking at, for a coordinator has just built it.

        So many records of one time, without codec and producer; its CRC is right. `timestamp_ms` is the time now.
        """

    def appended(self) -> None:
        """Wake who waits for the log's end. Called after `append` with no lock held."""

    def when_committed(self, end_offset: int, done: "Callable[[BrokerError | None], None]") -> None:
        """Call `done(None)` once `high_watermark` is at `end_offset`, or `done(error)` when that won't be.

        Called with no lock held. `done` runs once, on any thread, with no lock held.
        """

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from the one that holds `offset` on; the first is whole, the last may be cut. Raises BrokerError."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int:
        """What is below it may be answered: the replicas have it, and the disk where an fsync was asked for."""


class Delays(Protocol):
    """The broker's timer: callbacks after a delay, on a thread that must not be held up. Any thread."""

    def schedule(self, callback: Callable[[], None], delay_ms: float) -> Any: ...

    def cancel(self, entry: Any) -> bool: ...


class Surroundings(NamedTuple):
    """What a coordinator's runtime is given, whichever coordinator it is."""

    now_ms: Callable[[], int]
    monotonic_ms: Callable[[], int]
    config: "Callable[[], BrokerConfig]"
    group_config: "Callable[[str], GroupConfig]"
    """A group's settings as they are now."""
    topics: "Topics"
    count_event: Callable[[str], None]
    delays: Delays
    execute: Callable[[Callable[[], None]], None]
    """Runs a piece of work soon, on a thread that may wait for locks; the work waits for no fsync."""
    thread_died: Callable[[BaseException], None]


class Timers(Protocol):
    """One shard's timers. An operation that is due runs as any other: under the shard's lock, its Result carried out.

    Called under the shard's lock only. They end with the shard.
    """

    def schedule(self, key: Hashable, delay_ms: float, operation: "Callable[[], Result]") -> None:
        """Run `operation` after `delay_ms`; one that was scheduled under this key is replaced."""

    def cancel(self, key: Hashable) -> None:
        """Forget the operation of that key, if there is one."""

    def is_scheduled(self, key: Hashable) -> bool:
        """Whether an operation waits under that key."""


class Topics(Protocol):
    """The cluster's topics as this broker knows them now. Any thread; each call sees one snapshot."""

    def topic_id(self, name: str) -> bytes | None:
        """The id of that topic (16 bytes), None if there is no such topic."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic of that id."""

    def partition_count(self, name: str) -> int | None:
        """How many partitions it has, None if there is no such topic."""

    def racks(self, name: str, partition: int) -> frozenset[str]:
        """The racks of the partition's replicas."""

    def names(self) -> Iterable[str]:
        """All topics' names, internal ones too."""

    @property
    def version(self) -> int:
        """Grows whenever topics come, go or grow."""


class Clock(Protocol):
    """What time it is."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """The time of day, for what is kept and shown. It may be set, forward and back."""

    @property
    def monotonic_ms(self) -> Callable[[], int]:
        """For measuring how long something takes: sessions, rebalances. Nobody sets it."""


class ShardContext(Clock, Protocol):
    """What a shard is given."""

    @property
    def partition(self) -> int:
        """Which partition of the internal topic it stands for."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch under which this broker leads that partition."""

    @property
    def timers(self) -> Timers: ...

    @property
    def topics(self) -> Topics: ...

    @property
    def config(self) -> "BrokerConfig":
        """The settings as they are now."""

    @property
    def group_config(self) -> "Callable[[str], GroupConfig]":
        """A group's own settings over the broker's, as they are now."""

    @property
    def count(self) -> Callable[[str], None]:
        """Add one to a counter of that metric name."""


class Shard(Protocol):
    """A state machine over one partition of an internal topic. All calls are made under the shard's lock."""

    def replay(self, record: "CoordinatorRecord", offset: int, producer: "Producer | None") -> None:
        """Make the state what the record says; live and while loading. `producer`: pending until its marker comes."""

    def replay_end_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The producer's transaction has ended: what was pending stands, or is dropped."""

    def loaded(self) -> "Result":
        """Everything has been replayed: start timers, with full sessions."""

    def unloaded(self) -> "Result":
        """This broker leads the partition no more: the replies that end the waits (NOT_COORDINATOR). No records."""

    def topics_changed(self) -> "Result":
        """Topics came, went or grew."""
