"""Where the time of requests went: counted for all, logged for the slow ones."""

import logging

import pytest

from kavka.broker.metrics.registry import STAGES, Metrics
from kavka.broker.requests.handling import Context
from kavka.broker.requests.request_log import SLOW_NS, RequestLog
from tests.support.network_stage import Stage

MS = 1_000_000


def request(received: int, started: int, local_done: int, completed: int) -> Context:
    connection, _ = Stage().connect()
    context = Context(connection, memoryview(b""), received * MS, 0)
    context.api_key, context.api_version, context.client_id = 12, 3, "c"
    context.started_ns, context.local_done_ns, context.completed_ns = started * MS, local_done * MS, completed * MS
    return context


def test_a_requests_time_is_split_by_stage() -> None:
    metrics = Metrics()
    RequestLog(metrics, lambda: 115 * MS).answered([request(100, 103, 107, 112)])

    cells = metrics.mine().requests[12]
    durations = {name: cells.durations_ns(number) for number, name in enumerate(STAGES)}
    assert durations == {
        "total": [15 * MS],
        "request_queue": [3 * MS],
        "local": [4 * MS],
        "remote": [5 * MS],
        "response_queue": [3 * MS],
        "response_send": [0],
    }


@pytest.mark.parametrize(
    ("local_done", "completed", "slow"),
    [(10, 10, False), (SLOW_NS // MS + 10, SLOW_NS // MS + 10, True), (10, 10 * SLOW_NS // MS, False)],
    ids=["quick", "slow here", "waited for others"],
)
def test_slow_requests_are_logged_unless_they_only_waited(
    local_done: int, completed: int, slow: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        RequestLog(Metrics(), lambda: (completed + 1) * MS).answered([request(0, 1, local_done, completed)])

    assert bool(caplog.records) is slow
