"""When a log that may lack records has all that was committed (KAFKA-14139): its leader's end proves it, and no less.

An answer without records proves nothing: its bytes may have gone to other partitions, or a throttle held them back. So
the leader is asked where its log ends, in its epoch, once it has taken a fetch from this log's end without telling of
another history. Who has come that far since has all that was committed by then; and since then nothing was without it,
as it is in sync.
"""

import logging
from collections.abc import Callable
from typing import Final

from kavka.broker.replication.followed_partitions import Followed
from kavka.broker.replication.leader_port import LATEST, LeaderPort
from kavka.protocol.errors import BrokerError, ErrorCode

log: Final = logging.getLogger(__name__)


class Proofs:
    """Of the partitions of one fetcher whose logs are unproven.

    Threads: the fetcher's own. `follows` says whether that is still so, under the same epoch.
    """

    __slots__ = ("_asks_from_ms", "_backoff_ms", "_ends", "_follows", "_leader", "_now_ms")

    def __init__(
        self,
        leader: LeaderPort,
        follows: Callable[[Followed], bool],
        backoff_ms: Callable[[], int],
        now_ms: Callable[[], float],
    ) -> None:
        self._leader: Final = leader
        self._follows: Final = follows
        self._backoff_ms: Final = backoff_ms
        self._now_ms: Final = now_ms
        self._ends: dict[Followed, int | None] = {}
        """Where the leader's log ended when it was asked; None: it was not, or did not say."""
        self._asks_from_ms = 0.0

    def agreed(self, followed: Followed) -> None:
        """The leader has taken a fetch from the log's end, and told of no other history."""
        if followed.log.is_unproven:
            self._ends.setdefault(followed, None)

    def prove(self) -> None:
        """Ask where it has to, and note who has all. Raises LeaderUnreachableError."""
        if not self._ends:
            return
        for followed in [each for each in self._ends if not self._follows(each) or not each.log.is_unproven]:
            del self._ends[followed]
        unasked = [followed for followed, end_offset in self._ends.items() if end_offset is None]
        if unasked and self._now_ms() >= self._asks_from_ms:
            self._ask(unasked)
        for followed, end_offset in list(self._ends.items()):
            if end_offset is not None and followed.log.log_end_offset >= end_offset:
                self._note(followed)

    def _ask(self, unasked: list[Followed]) -> None:
        answers = self._leader.offsets({each.key: each.state.leader_epoch for each in unasked}, LATEST)
        for followed in unasked:
            code, end_offset = answers.get(followed.key, (ErrorCode.UNKNOWN_SERVER_ERROR, -1))
            if code == ErrorCode.NONE and end_offset >= 0:
                self._ends[followed] = end_offset
            else:
                log.info("the leader's end is not known log=%s error=%s", followed.log, code.name)
                self._asks_from_ms = self._now_ms() + self._backoff_ms()

    def _note(self, followed: Followed) -> None:
        try:
            followed.partition.note_caught_up(followed.state.leader_epoch)
        except BrokerError as failure:
            log.warning("stays unproven log=%s error=%r", followed.log, str(failure))
        else:
            log.info("has all that its leader had log=%s end=%d", followed.log, followed.log.log_end_offset)
