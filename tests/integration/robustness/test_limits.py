"""Limits on connections, descriptors and memory: what is beyond them waits or is turned away, the rest is served."""

import resource
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.kavka_process import KavkaProcess
from tests.support.metrics_page import metric, wait_for_metric
from tests.support.probe import answers
from tests.support.processes import let_pass, wait_until
from tests.support.wire import (
    FETCH_VERSION,
    FRAMED_BY_HAND,
    PRODUCE_VERSION,
    ClosedError,
    Wire,
    batch_of,
    create_topic,
    fetch_request,
    frame,
    produce,
    produce_request,
)

REJECTED_CONNECTIONS = "kavka_network_rejected_connections_total"
MIB = 1024 * 1024
IDLE_MS = 6000
"""So long that a client that asks is not taken for idle where a busy machine lets it wait."""


def test_connections_beyond_the_limit_wait_until_one_closes(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"max.connections": "3"}) as broker, ExitStack() as closing:
        first, *_ = [closing.enter_context(connected(broker)) for _ in range(3)]
        late = closing.enter_context(Wire(broker.host, broker.port, timeout_s=0.5))
        late.send(ApiVersionsRequest(), 0)
        with pytest.raises(TimeoutError):
            late.receive_frame()

        first.close()

        late.socket.settimeout(60)
        assert late.answer(ApiVersionsRequest(), 0).error_code == 0


def test_an_address_with_too_many_connections_is_turned_away_and_counted(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip": "2", "metrics.port": "0"}
    with KavkaProcess(tmp_path, settings) as broker, ExitStack() as closing:
        first, *_ = [closing.enter_context(connected(broker)) for _ in range(2)]
        # Those that asked whether the broker serves may have had these two refused a time or two.
        refused_before = metric(broker, REJECTED_CONNECTIONS)
        with Wire(broker.host, broker.port) as refused:
            assert refused.closed_by_peer()
        assert wait_for_metric(broker, REJECTED_CONNECTIONS, lambda count: count == refused_before + 1)
        # It is counted first, and said then.
        broker.process.wait_for_log("too many connections from this address", 60)

        first.close()

        wait_until(lambda: answers(broker.host, broker.port), 60, "no room although one has left")


def test_an_override_gives_one_address_more_connections(tmp_path: Path) -> None:
    settings = {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:2"}
    with KavkaProcess(tmp_path, settings) as broker, connected(broker), connected(broker):
        refused = Wire(broker.host, broker.port)
        assert refused.closed_by_peer()
        refused.close()


def test_connections_come_no_faster_than_the_rate_allows(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"max.connection.creation.rate": "10", "quota.window.num": "3"}) as broker:
        started_at = time.monotonic()
        for _ in range(40):
            with connected(broker):
                pass
        taken_s = time.monotonic() - started_at

    # What the last two seconds allow (quota.window.num less one) may come at once, as in Kafka.
    assert taken_s > 1.5


def test_a_connection_over_which_nothing_goes_is_closed_also_while_it_waits_for_data(tmp_path: Path) -> None:
    """As Kafka has it: a client that is gone for good may have left any wait behind."""
    with KavkaProcess(tmp_path, {"connections.max.idle.ms": str(IDLE_MS), "metrics.port": "0"}) as broker:
        with Wire(broker.host, broker.port) as admin:
            create_topic(admin, "quiet")
        with connected(broker) as idle, connected(broker) as waiting, connected(broker) as asking:
            started_at = time.monotonic()
            waiting.send(fetch_request("quiet", 0, max_wait_ms=2**31 - 1), FETCH_VERSION)
            for client in (idle, waiting):
                client.socket.settimeout(0.1)
            gone: set[Wire] = set()
            while len(gone) < 2:
                # Its answers come later than its requests, and count.
                assert asking.ask(fetch_request("quiet", 0, max_wait_ms=IDLE_MS // 3), FETCH_VERSION).error_code == 0
                gone.update(client for client in (idle, waiting) if client not in gone and has_ended(client))
                assert time.monotonic() - started_at < 120
            assert time.monotonic() - started_at > IDLE_MS / 1000 * 0.9
        assert broker.process.log_text().count("closing idle connection") == 2
        wait_for_metric(broker, "kafka_server_delayedoperationpurgatory_purgatorysize", lambda size: size == 0)


def test_a_client_that_takes_no_answers_is_closed_when_it_has_been_idle(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"connections.max.idle.ms": "1000"}) as broker:
        stuck = Wire(broker.host, broker.port, timeout_s=1, receive_buffer_bytes=4096)
        with stuck:
            # It may be closed before this side finds the time to give up.
            with pytest.raises((TimeoutError, ConnectionError)):
                stuck.socket.sendall(frame(ApiVersionsRequest(), 0) * 1_000_000)
            wait_until(lambda: "closing idle connection" in broker.process.log_text(), 60, "it is still there")
            broker.process.check_alive()


def test_accepting_goes_on_after_the_broker_ran_out_of_descriptors(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, {"metrics.port": "0"}) as broker, ExitStack() as closing:
        with Wire(broker.host, broker.port) as admin:
            create_topic(admin, "before")
            produce(admin, "before", batch_of([b"x"], timestamp_ms=now_ms()))
        in_use = len(list(Path(f"/proc/{broker.process.pid}/fd").iterdir()))
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (in_use + 50, in_use + 50))
        clients = [closing.enter_context(Wire(broker.host, broker.port, timeout_s=60)) for _ in range(80)]
        wait_until(lambda: "out of file descriptors" in broker.process.log_text(), 60, "it never ran out")
        for client in clients:
            client.close()

        wait_until(lambda: answers(broker.host, broker.port), 60, "does not accept any more")
        assert metric(broker, REJECTED_CONNECTIONS) > 0
        with Wire(broker.host, broker.port) as admin:
            assert produce(admin, "before", batch_of([b"y"], timestamp_ms=now_ms())).error_code == 0
        broker.process.check_alive()
        assert "level=CRITICAL" not in broker.process.log_text()


def test_large_requests_share_the_memory_that_they_may_use(tmp_path: Path) -> None:
    """Sixteen clients send 8 MiB each, slowly and at once: each is served, two at a time in memory."""
    settings = {
        "queued.max.request.bytes": str(20 * MIB),
        "socket.request.max.bytes": str(16 * MIB),
        "message.max.bytes": str(16 * MIB),
    }
    with KavkaProcess(tmp_path, settings) as broker, ExitStack() as closing:
        with Wire(broker.host, broker.port) as admin:
            create_topic(admin, "large")
            warm = produce(admin, "large", batch_of([bytes(8 * MIB)], timestamp_ms=now_ms()))
            assert warm.error_code == 0
        before = broker.process.rss_bytes()
        request = produce_request("large", batch_of([bytes(8 * MIB)], timestamp_ms=now_ms()))
        data = frame(request, PRODUCE_VERSION)
        clients = [closing.enter_context(Wire(broker.host, broker.port, timeout_s=60)) for _ in range(16)]
        in_turns([sender(client, data, 512 * 1024) for client in clients])
        answers_of = [client.answer(request, PRODUCE_VERSION, correlation_id=FRAMED_BY_HAND) for client in clients]
        codes = [answer.responses[0].partition_responses[0].error_code for answer in answers_of]

        assert codes == [0] * 16
        assert broker.process.peak_rss_bytes() - before < 60 * MIB


def test_large_requests_behind_ones_that_wait_leave_the_memory_to_others(tmp_path: Path) -> None:
    settings = {
        "queued.max.request.bytes": str(2 * MIB),
        "socket.request.max.bytes": str(MIB),
        "num.network.threads": "1",
    }
    with KavkaProcess(tmp_path, settings) as broker, ExitStack() as closing:
        with Wire(broker.host, broker.port) as admin:
            create_topic(admin, "large")
            create_topic(admin, "quiet")
        batch = batch_of([bytes(900_000)], timestamp_ms=now_ms())
        waiting = [closing.enter_context(connected(broker)) for _ in range(4)]
        for client in waiting:
            client.send(fetch_request("quiet", 0, max_wait_ms=600_000), FETCH_VERSION)
            client.socket.sendall(frame(produce_request("large", batch), PRODUCE_VERSION))

        with connected(broker) as other:
            assert produce(other, "large", batch).error_code == 0
            assert produce(other, "quiet", batch_of([b"x"], timestamp_ms=now_ms())).error_code == 0
        for client in waiting:
            client.receive_frame()
            answer = client.answer(produce_request("large", batch), PRODUCE_VERSION, correlation_id=FRAMED_BY_HAND)
            assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_request_that_claims_to_be_larger_than_allowed_is_refused_at_its_head(tmp_path: Path) -> None:
    settings = {"socket.request.max.bytes": str(MIB), "metrics.port": "0"}
    with KavkaProcess(tmp_path, settings) as broker, Wire(broker.host, broker.port) as liar:
        liar.socket.sendall(struct.pack(">i", MIB + 1))

        assert liar.closed_by_peer()
        assert metric(broker, "kavka_network_rejected_requests_total") == 1


def test_a_batch_beyond_the_topics_limit_is_refused_and_the_connection_goes_on(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as broker, Wire(broker.host, broker.port) as client:
        create_topic(client, "small", configs={"max.message.bytes": "1000"})
        large = produce(client, "small", batch_of([bytes(2000)], timestamp_ms=now_ms()))
        small = produce(client, "small", batch_of([b"x"], timestamp_ms=now_ms()))

        assert large.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert small.error_code == 0


@contextmanager
def connected(broker: KavkaProcess) -> Iterator[Wire]:
    """A connection that has been answered: the broker has it.

    Those that asked before whether the broker serves may count a little longer than they were open.
    """

    def answered() -> Wire | None:
        wire = Wire(broker.host, broker.port)
        try:
            assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
        except (ClosedError, ConnectionError):
            wire.close()
            return None
        return wire

    with wait_until(answered, 60, "no connection is let in") as wire:
        yield wire


def has_ended(client: Wire) -> bool:
    try:
        return client.socket.recv(1) == b""
    except TimeoutError:
        return False


def sender(client: Wire, data: bytes, piece_bytes: int) -> Callable[[], bool]:
    """Each call sends what the broker takes of the next piece; False when all is sent."""
    position = 0
    client.socket.setblocking(False)

    def step() -> bool:
        nonlocal position
        try:
            position += client.socket.send(data[position : position + piece_bytes])
        except BlockingIOError:
            return True
        if position == len(data):
            client.socket.settimeout(60)
            return False
        return True

    return step


def in_turns(steps: list[Callable[[], bool]]) -> None:
    deadline = time.monotonic() + 200
    while steps:
        assert time.monotonic() < deadline, f"{len(steps)} clients are stuck"
        steps = [step for step in steps if step()]
        let_pass(0.001)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
