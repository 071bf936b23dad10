"""What is done to many logs from time to time: flushing, retention, forgetting producers.

A pass over ten thousand logs must not hold the interpreter while requests wait for it: it pauses after every
millisecond of work. One log's error doesn't keep the others from their turn.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kavka.protocol.errors import BrokerError
from kavka.storage.partition_log import PartitionLog

_log: Final = logging.getLogger(__name__)
_SLICE_NS: Final = 1_000_000
_PAUSE_S: Final = 0.0002

Pause = Callable[[], object]


def flush_due(logs: Iterable[PartitionLog], now_ms: int, pause: Pause) -> int:
    """fsync the logs whose `flush.ms` or `flush.messages` says so; returns how many.

    Also what a roll left to be fsynced where that was refused, or has not begun yet.
    """

    def flush(log: PartitionLog) -> int:
        if log.sealed:
            log.flush(log.published[3][-1])
        unflushed = log.log_end_offset - log.recovery_point
        config = log.config
        if unflushed <= 0:
            return 0
        if unflushed < config.flush_messages and now_ms - log.last_flush_ms < config.flush_ms:
            return 0
        log.flush()
        return 1

    return _over(logs, flush, pause)


def delete_old_segments(logs: Iterable[PartitionLog], now_ms: int, pause: Pause) -> int:
    """Delete segments that are too old, too many, or below the log start offset; returns how many.

    Also those that a compaction has replaced, where it was kept from deleting them.
    """
    logs = list(logs)
    _over((log for log in logs if log.swapped is not None), _finish_swap, pause)
    return _over(logs, lambda log: log.delete_old_segments(now_ms), pause)


def remove_expired_producers(logs: Iterable[PartitionLog], now_ms: int, pause: Pause) -> int:
    """Forget producer ids that were silent for too long; returns how many."""
    return _over(logs, lambda log: log.remove_expired_producers(now_ms), pause)


def yield_interpreter() -> None:
    """Let threads run that wait for the interpreter."""
    time.sleep(_PAUSE_S)


def _finish_swap(log: PartitionLog) -> int:
    log.finish_swap()
    return 0


def _over(logs: Iterable[PartitionLog], work: Callable[[PartitionLog], int], pause: Pause) -> int:
    done = 0
    for log in paced(logs, pause):
        try:
            done += work(log)
        except (OSError, BrokerError) as error:
            _log.warning("could not keep a log in order: partition=%s-%d error=%s", log.topic, log.partition, error)
    return done


def paced(logs: Iterable[PartitionLog], pause: Pause) -> Iterator[PartitionLog]:
    """The logs, with a pause after every millisecond of what the caller does with them."""
    since = time.perf_counter_ns()
    for log in logs:
        yield log
        if time.perf_counter_ns() - since > _SLICE_NS:
            pause()
            since = time.perf_counter_ns()
