"""Counting in each thread's cells, adding up, and the names under which dashboards find it."""

import threading
from collections.abc import Callable, Iterable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kavka.broker.metrics.exposition import Exposition, quantile
from kavka.broker.metrics.registry import RECENT_REQUESTS, Metrics, RequestTimes
from kavka.broker.requests.request_log import RequestLog


def in_threads(count: int, work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def samples(exposition: Exposition) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(exposition.render().decode())
        for sample in family.samples
    }


def took_ms(total: float) -> RequestTimes:
    """A request of that length, all of it in the handler."""
    end = int(total * 1_000_000)
    return (0, 0, end, end, end, end)


def test_counts_of_all_threads_are_added_up_those_of_ended_ones_too() -> None:
    metrics = Metrics()

    def work() -> None:
        cells = metrics.enlist("io")
        cells.topic("visits").messages_in += 10
        cells.event("kavka_test")
        cells.request(0, took_ms(1))

    for _ in range(2):
        in_threads(4, work)
        every, by_name = metrics.topics()
    work()

    assert (every.messages_in, by_name["visits"].messages_in) == (80, 80)
    assert metrics.topics()[0].messages_in == 90
    assert metrics.events() == {"kavka_test": 9}
    assert sum(cells.count for cells in metrics.requests()[0]) == 9


def test_a_forgotten_topic_stays_in_the_sum_over_all_topics() -> None:
    metrics = Metrics()
    metrics.mine().topic("visits").bytes_in += 5

    metrics.forget_topic("visits")

    every, by_name = metrics.topics()
    assert (every.bytes_in, by_name) == (5, {})


def test_the_last_requests_are_remembered_and_no_more() -> None:
    metrics = Metrics()
    cells = metrics.mine()
    for _ in range(RECENT_REQUESTS):
        cells.request(3, took_ms(1000))
    for _ in range(RECENT_REQUESTS):
        cells.request(3, took_ms(2))

    (kept,) = metrics.requests()[3]

    assert kept.count == 2 * RECENT_REQUESTS
    assert set(kept.durations_ns(0)) == {2_000_000}


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0.0), ([7], 0.99, 7.0), ([1, 2, 3], 0.5, 2.0), (list(range(1, 100)), 0.95, 95.0), ([1, 2], 0.0, 1.0)],
)
def test_quantiles_are_interpolated(values: list[int], share: float, expected: float) -> None:
    assert quantile(values, share) == pytest.approx(expected)


def test_prometheus_reads_requests_by_api_stage_and_quantile() -> None:
    metrics = Metrics()
    times = (0, 1_000_000, 3_000_000, 10_000_000, 10_500_000, 11_000_000)
    metrics.enlist("io").request(0, times)
    name = "kafka_network_requestmetrics_"
    median = frozenset({("request", "Produce"), ("quantile", "0.5")})

    read = samples(Exposition(metrics, {0: "Produce"}))

    assert read[name + "requests_total", frozenset({("request", "Produce")})] == 1
    stages: dict[str, float] = {"totaltimems": 11, "requestqueuetimems": 1, "localtimems": 2, "remotetimems": 7}
    stages |= {"responsequeuetimems": 0.5, "responsesendtimems": 0.5}
    assert {stage: read[name + stage, median] for stage in stages} == pytest.approx(stages)
    assert read[name + "totaltimems_count", frozenset({("request", "Produce")})] == 1


def test_prometheus_reads_topics_events_and_gauges() -> None:
    metrics = Metrics()
    metrics.mine().topic('odd"name\n').messages_in += 3
    metrics.count("kavka_test", 2)
    metrics.gauge("kavka_one", "One value.", lambda: 4)

    def readings() -> Iterable[tuple[dict[str, str], float]]:
        return (({"partition": str(index)}, float(index)) for index in range(500))

    metrics.gauge("kavka_many", "Many values.", readings)

    exposition = Exposition(metrics, {})
    read = samples(exposition)

    messages = "kafka_server_brokertopicmetrics_messagesin_total"
    assert (read[messages, frozenset()], read[messages, frozenset({("topic", 'odd"name\n')})]) == (3, 3)
    assert read["kavka_test_total", frozenset()] == 2
    assert read["kafka_server_replicamanager_isrshrinks_total", frozenset()] == 0
    assert read["kavka_one", frozenset()] == 4
    assert sum(name == "kavka_many" for name, _ in read) == 500
    assert exposition.render().count(b"# TYPE kavka_many") == 1


def test_only_threads_that_are_made_for_it_are_counted_as_io_threads() -> None:
    """Timers, controllers and whoever else answers a request counts in cells of its own, but is no I/O thread."""
    metrics = Metrics()
    RequestLog(metrics).answered([])
    metrics.mine().topic("visits").bytes_in += 1
    assert [metrics.busy(kind)[0] for kind in ("io", "network")] == [0, 0]

    metrics.enlist("io").busy_ns += 7

    assert [metrics.busy(kind) for kind in ("io", "network")] == [(1, 7), (0, 0)]


def test_idle_shares_are_those_since_the_last_scrape() -> None:
    now = [0]
    metrics = Metrics(lambda: now[0])
    cells = metrics.enlist("io")
    exposition = Exposition(metrics, {})
    key = ("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", frozenset[tuple[str, str]]())
    assert samples(exposition)[key] == 1.0

    now[0], cells.busy_ns = 1_000, 750

    assert samples(exposition)[key] == pytest.approx(0.25)
    now[0] = 2_000
    assert samples(exposition)[key] == 1.0
