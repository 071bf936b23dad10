"""Numbers under Kafka's names: over windows of time, with tags, and as families."""

import math
import selectors
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TypeAlias

import pytest

from kavka.client.call import Call
from kavka.client.client_metrics import GONE_FOR_MS, Metrics
from kavka.client.counts import ClientCounts
from kavka.client.measures import Measure, RateOfTotal
from kavka.client.network_metrics import NetworkMetrics, add_times
from kavka.client.node import Node
from kavka.client.selecting import TimedSelector
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from tests.support.client_line import Clock

CALL = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")

TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics("producer", "p-1", window_ms=1_000, samples=2, now_ms=clock)


class TestMeasure:
    def test_it_goes_over_the_last_windows_only(self) -> None:
        measure = Measure(0, window_ms=1_000, samples=2)
        measure.record(10, 0)
        measure.record(30, 900)
        assert (measure.average(900), measure.maximum(900)) == (20, 30)
        measure.record(2, 1_500)
        assert (measure.average(1_500), measure.maximum(1_500)) == (14, 30)
        measure.record(4, 2_500)
        assert (measure.average(2_500), measure.maximum(2_500)) == (3, 4), "the first window is gone"
        assert (measure.all_count(), measure.all_total()) == (4, 46)

    def test_what_is_old_counts_no_more_even_if_nothing_comes_after_it(self) -> None:
        measure = Measure(0, window_ms=1_000, samples=2)
        measure.record(10, 0)
        assert math.isnan(measure.average(5_000))
        assert math.isnan(measure.maximum(5_000))
        assert measure.rate(5_000) == 0

    def test_a_rate_is_by_the_second_and_not_by_the_first_moment(self) -> None:
        measure = Measure(0, window_ms=1_000, samples=2)
        measure.record(100, 1)
        assert measure.rate(1) == 100, "as if a window had gone by"
        measure.record(100, 999)
        measure.record(100, 1_999)
        assert measure.rate(2_000) == 150
        assert measure.count_rate(2_000) == 1.5

    def test_there_is_nothing_of_nothing(self) -> None:
        measure = Measure(0)
        assert math.isnan(measure.average(1))
        assert measure.rate(1) == measure.all_total() == 0


def test_a_totals_rate_is_between_readings() -> None:
    total = 0.0
    rate = RateOfTotal(lambda: total, 0, window_ms=1_000)
    total = 50
    assert rate.rate(500) == 100
    total = 150
    assert rate.rate(1_500) == 100
    assert rate.rate(2_500) == 0, "nothing came since the reading a window ago"


def test_metrics_are_read_by_name_and_with_tags_by_both(metrics: Metrics) -> None:
    lag = 3.0
    metrics.gauge("records-lag-max", lambda: lag, group="consumer-fetch-manager-metrics")
    metrics.gauge("records-lag-max", lambda: 9.0, tags={"topic": "t", "partition": 0})
    assert metrics["records-lag-max"] == 3
    assert metrics["records-lag-max", {"partition": 0, "topic": "t"}] == 9
    assert set(metrics) == {"records-lag-max", ("records-lag-max", (("partition", "0"), ("topic", "t")))}
    assert dict(metrics)["records-lag-max"] == 3
    assert len(metrics) == 2
    with pytest.raises(KeyError):
        metrics["records-lag-min"]
    metrics.remove({"topic": "t", "partition": 0})
    assert list(metrics) == ["records-lag-max"]


def test_what_goes_while_all_are_read_is_nan_and_later_a_key_error(metrics: Metrics, clock: Clock) -> None:
    """dict() lists the names first: meanwhile another thread may revoke a partition."""
    of_partition = {"topic": "t", "partition": 0}
    tagged = ("records-lag", (("partition", "0"), ("topic", "t")))

    def revoke() -> float:
        metrics.remove(of_partition)
        return 1.0

    metrics.gauge("assigned-partitions", revoke)
    metrics.gauge("records-lag", lambda: 3.0, tags=of_partition)
    read = dict(metrics)
    assert read["assigned-partitions"] == 1
    assert math.isnan(read[tagged])
    assert list(metrics) == ["assigned-partitions"]
    assert tagged not in metrics
    assert len(metrics) == 1

    metrics.gauge("records-lag", lambda: 4.0, tags=of_partition)
    assert metrics[tagged] == 4, "it is assigned again"
    metrics.remove(of_partition)
    clock.now_ms += GONE_FOR_MS
    with pytest.raises(KeyError, match="records-lag"):
        metrics["records-lag", of_partition]
    for number in range(3):
        metrics.gauge("records-lag", lambda: 4.0, tags={"partition": number})
        metrics.remove({"partition": number})
        clock.now_ms += GONE_FOR_MS
    assert len(metrics._gone) == 1, "who went long ago is forgotten"


def between_lines(call: Callable[[], object], look: Callable[[], object]) -> None:
    """Have `look` called before each line that `call` runs, as if by a thread that got the processor just then."""

    def trace(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
        if event == "line":
            sys.settrace(None)
            look()
            sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)


def test_a_total_never_shrinks_for_who_reads_while_a_window_ends() -> None:
    measure = Measure(0, window_ms=1_000)
    measure.record(10, 0)
    counts, totals, rates = [0.0], [0.0], []

    def look() -> None:
        counts.append(measure.all_count())
        totals.append(measure.all_total())
        rates.append(measure.count_rate(1_000))

    between_lines(lambda: measure.record(1, 1_000), look)

    assert len(counts) > 8
    assert counts == sorted(counts)
    assert totals == sorted(totals)
    assert max(rates) <= 2, "no value is there twice"
    assert (measure.all_count(), measure.all_total()) == (2, 11)


def in_threads(*calls: Callable[[], object]) -> None:
    """Each until it returns; with the processor handed on as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(calls)) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result()
    finally:
        sys.setswitchinterval(interval)


def test_a_rate_may_be_read_by_several_threads() -> None:
    rate = RateOfTotal(lambda: 1.0, 0, window_ms=1)
    in_threads(*[lambda: [rate.rate(now_ms / 16) for now_ms in range(20_000)]] * 3)


def test_a_measure_is_read_under_each_of_its_names(metrics: Metrics, clock: Clock) -> None:
    size = metrics.measure(average="batch-size-avg", maximum="batch-size-max", total="byte-total", count="batch-total")
    size.record(10, clock())
    size.record(20, clock())
    read = {name: metrics[name] for name in ("batch-size-avg", "batch-size-max", "byte-total", "batch-total")}
    assert read == {"batch-size-avg": 15, "batch-size-max": 20, "byte-total": 30, "batch-total": 2}


def test_connections_and_answers_are_counted_for_all_and_for_each_node(metrics: Metrics, clock: Clock) -> None:
    counts = ClientCounts()
    network = NetworkMetrics(metrics, counts)
    counts.connections, counts.disconnects, counts.requests = 3, 1, 2
    for node, latency_ms in ((Node(1, "h", 1), 10), (Node(1, "h", 1, lane="coordinator"), 30)):
        call = Call(CALL, print)
        call.sent_ms, call.size_bytes, call.answer_size_bytes = clock() - latency_ms, 100, 70
        network.answered(node, call, clock())
    assert metrics["connection-count"] == 2
    assert metrics["request-total"] == 2
    assert metrics["request-latency-avg"] == 20
    assert metrics["request-size-max"] == 100
    assert metrics["request-latency-avg", {"node-id": "node-1"}] == 10
    assert metrics["request-latency-max", {"node-id": "node-2147483646"}] == 30
    assert metrics["outgoing-byte-total", {"node-id": "node-1"}] == 100
    assert metrics["incoming-byte-total", {"node-id": "node-1"}] == 70
    assert metrics["response-total", {"node-id": "node-1"}] == 1


def test_families_have_the_names_of_the_jmx_exporter(metrics: Metrics) -> None:
    from prometheus_client import CollectorRegistry

    metrics.gauge("batch-size-avg", lambda: 7.0)
    registry = CollectorRegistry()
    registry.register(metrics.as_prometheus())
    assert registry.get_sample_value("kafka_producer_producer_metrics_batch_size_avg", {"client_id": "p-1"}) == 7


def test_each_family_is_there_once_whoever_has_it(metrics: Metrics) -> None:
    """As the text format asks for, which this is read back from."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.parser import text_string_to_metric_families

    other = Metrics("producer", "p-2")
    metrics.gauge("request-rate", lambda: 1.0, group="producer-node-metrics")
    for each, client in enumerate((metrics, other), 2):
        tags = {"node-id": "node-1"}
        client.gauge("request-rate", float(each).__float__, group="producer-node-metrics", tags=tags)
    registry = CollectorRegistry()
    registry.register(metrics.as_prometheus(other))
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())
    assert family.name == "kafka_producer_producer_node_metrics_request_rate"
    read = {(sample.labels["client_id"], sample.labels["node_id"]): sample.value for sample in family.samples}
    assert read == {("p-1", ""): 1, ("p-1", "node-1"): 2, ("p-2", "node-1"): 3}


def test_waiting_for_connections_and_being_busy_with_them_are_timed(metrics: Metrics, clock: Clock) -> None:
    selector = TimedSelector()
    add_times(metrics, selector)
    assert math.isnan(metrics["io-wait-time-ns-avg"])
    one, other = socket.socketpair()
    with one, other:
        selector.register(one, selectors.EVENT_READ)
        assert list(selector.select(0.001)) == []
        assert metrics["io-wait-time-ns-total"] >= 1_000_000
        assert metrics["io-time-ns-total"] == 0
        other.send(b"x")
        assert [key.fileobj for key, _ in selector.select()] == [one]
    selector.close()
    assert metrics["io-time-ns-total"] > 0
    assert metrics["select-total"] == 2
    assert metrics["io-wait-time-ns-avg"] * 2 == metrics["io-wait-time-ns-total"]
    clock.now_ms += 1_000
    assert metrics["io-wait-ratio"] == pytest.approx(metrics["io-wait-time-ns-total"] / 1e9)
    assert metrics["io-ratio"] == pytest.approx(metrics["io-time-ns-total"] / 1e9)
