"""Where requests' time went: counted for the metrics, and logged for those that were slow."""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context
from kavka.protocol.headers import decode_request_header

if TYPE_CHECKING:
    from kavka.broker.metrics.registry import Metrics, RequestTimes
    from kavka.broker.network.connection import Connection

SLOW_NS: Final = 1_000_000_000

log = logging.getLogger(__name__)


class RequestLog:
    """Takes in answered requests. Threads: any; what it counts lies in the calling thread's cells."""

    def __init__(self, metrics: "Metrics", now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._metrics = metrics
        self._now_ns = now_ns

    def answered(self, contexts: list[Context]) -> None:
        """The answers of these requests were written, or handed to the network thread to be written."""
        sent_ns = self._now_ns()
        cells = self._metrics.mine()
        for context in contexts:
            received_ns = context.received_ns
            local_done_ns = context.local_done_ns
            completed_ns = context.completed_ns or local_done_ns
            times = (received_ns, context.started_ns, local_done_ns, completed_ns, sent_ns, sent_ns)
            cells.request(context.api_key, times)
            if sent_ns - received_ns - (completed_ns - local_done_ns) > SLOW_NS:
                _log_slow(context.api_key, context.api_version, context.client_id, context.connection, times)


def log_slow(connection: "Connection", frame: memoryview, times: "RequestTimes") -> None:
    """Log a request that took more than SLOW_NS on a short way, where no header was decoded. Any thread."""
    header = decode_request_header(frame)
    _log_slow(header.api_key, header.api_version, header.client_id, connection, times)


def _log_slow(
    api_key: int, api_version: int, client_id: str | None, connection: "Connection", times: "RequestTimes"
) -> None:
    received_ns, started_ns, local_done_ns, completed_ns, sent_ns, _ = times
    log.warning(
        "slow request api=%d version=%d client_id=%r peer=%s queue_ms=%d local_ms=%d remote_ms=%d response_ms=%d",
        api_key,
        api_version,
        client_id,
        connection.peer_host,
        (started_ns - received_ns) // 1_000_000,
        (local_done_ns - started_ns) // 1_000_000,
        (completed_ns - local_done_ns) // 1_000_000,
        (sent_ns - completed_ns) // 1_000_000,
    )
