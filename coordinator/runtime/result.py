"""What a coordinator decides: records to append, answers to give, and what becomes of memory then.

A method of a shard looks at its state and returns a `Result`; it does no I/O. The runtime appends the records, replays
them, and sends the replies when the high watermark has passed them. If the append fails nothing is replayed, so that
memory never says what the log does not.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from kavka.protocol.errors import BrokerError
from kavka.protocol.schema import Record

Reply: TypeAlias = Callable[[Any], object]
"""Takes the response; kept by whoever waits. Called by the runtime, once, with no lock held."""


class CoordinatorRecord(NamedTuple):
    """A record of an internal topic. Without a value it is a tombstone."""

    key: Record
    value: Record | None
    value_version: int = 0


class Producer(NamedTuple):
    """The transactional producer on whose behalf records are written."""

    producer_id: int
    producer_epoch: int


class Result:
    """A decision.

    `records` are appended as one batch, all or none. When they stand they are replayed (unless `replays` is False: the
    state is already what they say, or `appended` makes it so), then `appended()` runs, both under the shard's lock.
    If they can't be appended `failed(error)` runs instead, and gives what to answer; without it, or if it raises
    BrokerError, each waiting reply gets nothing, and the operation's own `refused` is called.

    `replies` are sent when the high watermark has passed the records. Without records they are sent at once, unless
    `reads_committed`: then when everything that was appended before, and so may have been read, is committed. If that
    takes too long, `uncommitted(error)` says whom to answer what instead; without it the operation's own `refused` is
    called, which is right where nobody else waits.

    Where the records are `producer`'s, `guard` is what its transaction was verified with; the log refuses them if the
    transaction has ended since. 0: only one that is open already may go on.

    Threads: made and read under the shard's lock, replies are called without it.
    """

    __slots__ = (
        "appended",
        "batch",
        "batch_timestamp_ms",
        "failed",
        "guard",
        "producer",
        "reads_committed",
        "records",
        "replays",
        "replies",
        "uncommitted",
    )

    def __init__(
        self,
        records: Sequence[CoordinatorRecord] = (),
        replies: Sequence[tuple[Reply, Any]] = (),
        *,
        replays: bool = True,
        appended: Callable[[], "Result | None"] | None = None,
        failed: Callable[[BrokerError], "Result | None"] | None = None,
        producer: Producer | None = None,
        guard: int = 0,
        reads_committed: bool = False,
        uncommitted: Callable[[BrokerError], Sequence[tuple[Reply, Any]]] | None = None,
        batch: bytearray | None = None,
        batch_timestamp_ms: int = 0,
    ) -> None:
        self.records = records
        self.replies = replies
        self.replays = replays
        self.appended = appended
        """May give a further Result, which is treated likewise: a decision that follows at once."""
        self.failed = failed
        self.producer = producer
        self.guard = guard
        self.reads_committed = reads_committed
        self.batch = batch
        """The records as one batch (see `InternalLog.append_plain`), where the one who decides has it already."""
        self.batch_timestamp_ms = batch_timestamp_ms
        """The time of all records in `batch`."""
        self.uncommitted = uncommitted
        """Called without the shard's lock, so it may build answers and look at nothing that changes."""


NOTHING = Result()
"""Nothing to write, nothing to say. Shared: not to be changed."""
