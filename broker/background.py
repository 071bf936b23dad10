"""The broker's standing jobs: which pass over the logs runs at which interval."""

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kavka.broker.settings.dynamic_config import DynamicConfig
    from kavka.broker.socket_server import SocketServer
    from kavka.broker.waiting.scheduler import Scheduler
    from kavka.storage.log_manager import LogManager

FLUSH_NEVER_MS: Final = 60_000
"""How often topics' own `flush.ms` is looked at where `log.flush.scheduler.interval.ms` is at its default, never."""
MIN_DELETE_DELAY_MS: Final = 1_000
MAX_INTERVAL_MS: Final = 2**31 - 1
STORES_INTERVAL_MS: Final = 10_000
"""How often the files with listeners' certificates are looked at."""


def schedule_passes(
    scheduler: "Scheduler", logs: "LogManager", config: "DynamicConfig", sockets: "SocketServer"
) -> None:
    """Have the standing jobs run. Intervals are read anew each time: most can change while the broker runs."""
    first_ms = config.current.log_initial_task_delay_ms
    # By directory: a disk that answers nothing must not keep the others from getting rid of what is old.
    for directory in logs.directories:
        scheduler.every(
            f"retention {directory.path}",
            lambda: config.current.log_retention_check_interval_ms,
            partial(logs.retention_pass, directory),
            first_ms=first_ms,
        )
        scheduler.every(
            f"flush {directory.path}", lambda: _flush_interval_ms(config), partial(logs.flush_due, directory)
        )
    scheduler.every(
        "recovery-points",
        lambda: max(config.current.log_flush_offset_checkpoint_interval_ms, 100),
        logs.checkpoint_recovery_points,
        first_ms=first_ms,
    )
    scheduler.every(
        "log-start-offsets",
        lambda: max(config.current.log_flush_start_offset_checkpoint_interval_ms, 100),
        logs.checkpoint_log_start_offsets,
        first_ms=first_ms,
    )
    scheduler.every(
        "high-watermarks",
        lambda: max(config.current.replica_high_watermark_checkpoint_interval_ms, 100),
        logs.checkpoint_high_watermarks,
    )
    scheduler.every("delete-files", lambda: _delete_interval_ms(config), logs.delete_pending, first_ms=first_ms)
    scheduler.every(
        "expire-producers",
        lambda: config.current.producer_id_expiration_check_interval_ms,
        logs.expire_producers,
    )
    scheduler.every("certificates", lambda: _stores_interval_ms(sockets), lambda: look_at_stores(sockets))


def _flush_interval_ms(config: "DynamicConfig") -> int:
    return min(config.current.log_flush_scheduler_interval_ms, FLUSH_NEVER_MS)


def _delete_interval_ms(config: "DynamicConfig") -> int:
    return max(min(config.current.log_segment_delete_delay_ms, MAX_INTERVAL_MS), MIN_DELETE_DELAY_MS)


def look_at_stores(sockets: "SocketServer", *, was_asked: bool = False) -> bool:
    """Renew the certificates whose files have changed; where somebody `was_asked`, all. False if there are none."""
    for transports in sockets.transports:
        transports.look(was_asked=was_asked)
    return any(transports.has_tls for transports in sockets.transports)


def _stores_interval_ms(sockets: "SocketServer") -> int:
    return STORES_INTERVAL_MS if any(each.has_tls for each in sockets.transports) else MAX_INTERVAL_MS
