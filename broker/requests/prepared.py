"""Requests that repeat, prepared: what a connection keeps of its last requests to an API, so that the next costs less.

An API prepares its requests by keeping a `Prepared` in the connection's session, at the end of the ordinary way; from
then on `RequestRunner` tries that first, on I/O threads and on network threads alike. Whatever it leaves takes the
ordinary way, which decides again from the beginning and knows nothing of this one: so both give the same answers.

    prepared_produce.py    appends at once, where nothing but correlation id and records has changed
    prepared_commit.py     commits at once, where nothing but correlation id and offsets has changed
    prepared_fetch.py      waits for data, where a follower's fetch differs from the last by what it names
    prepared_member.py     a group's member joins, syncs or lives, where nothing but the generation has changed
    prepared_group.py      nothing is done at once; but in a small group a network thread may go the ordinary way
    Small, TAILING         the same: always, or in a fetch at the end of the log
"""

from collections.abc import Sized
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import ThreadCells
    from kavka.broker.network.connection import Connection

_HEAD: Final = Struct(">Ii")
HEAD_SIZE_BYTES: Final = _HEAD.size
"""Of API key, version and correlation id. Shorter frames are given to nobody here."""
read_head: Final = _HEAD.unpack_from
"""(API key and version as one number, correlation id) of a frame."""
CLOSES: Final = b"closes"
"""Stands for the answer where a request closes its connection; no answer is as short."""


class Later(Protocol):
    """An answer that comes later, and a place among those of its connection (`answers.Slot`)."""

    def park(
        self, connection: "Connection", received_ns: int, started_ns: int, done_ns: int, is_inline: bool, /
    ) -> bool:
        """Take the next place among the answers, and wait. False: whoever answers it goes on with the connection.

        Called by who runs the connection, once all before it that were ready are written; no lock held.
        """
        ...


class Prepared:
    """What one connection keeps of its requests to one API. This one keeps nothing.

    Threads: that which holds the connection's `running`.
    """

    __slots__ = ()

    closing_reason: str = ""
    """Why CLOSES."""

    def run(self, frame: memoryview, cells: "ThreadCells", may_wait: bool) -> bytes | Later | None:
        """Run a request to its whole answer (empty: it gets none); None if the request has to take the ordinary way.

        A Later where the answer has to wait: the caller parks it.
        CLOSES if it failed and has no answer that could say so: the caller writes the answers before it and closes.
        Unless `may_wait`, whatever would wait for a disk is left to the ordinary way, and so is a request above 16 KiB
        that costs more than writing its bytes, or one that would be unpacked. Raises nothing.
        """
        return None

    def is_small(self, frame: memoryview) -> bool:
        """Whether the ordinary way of this request, which `run` has left, is short enough for a network thread."""
        return False

    def forget(self) -> None:
        """Keep nothing for requests to come: the connection is closed. By its network thread, whoever may `run` now."""


class Small(Prepared):
    """Of APIs whose requests are always small, but for what is `busy`: while there is any, they may wait for disks."""

    __slots__ = ("_busy",)

    def __init__(self, busy: Sized = ()) -> None:
        """`busy` may change at any time."""
        self._busy = busy

    def is_small(self, frame: memoryview) -> bool:
        return not self._busy


class _Tailing(Prepared):
    __slots__ = ()

    def is_small(self, frame: memoryview) -> bool:
        # Before v4 the records of a fetch have to be converted.
        return frame[3] >= 4


TAILING: Final = _Tailing()
"""Of a connection whose last fetch found nothing: the next will wait, or read what was written just now."""
