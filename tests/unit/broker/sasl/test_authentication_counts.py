"""How authentications went: counted by listener, and their times over the last minute."""

import math

from kavka.broker.metrics.registry import Metrics
from kavka.broker.security.authentication_counts import PREFIX, AuthenticationCounts, counts_of


def shown(metrics: Metrics, name: str) -> dict[str, float]:
    (gauge,) = [gauge for gauge in metrics.gauges() if gauge.name == PREFIX + name]
    return {labels["listener"]: value for labels, value in gauge.read()}


def test_how_long_it_took_is_that_of_the_last_minute() -> None:
    now_ms = 1_000_000
    metrics, counts = Metrics(), AuthenticationCounts(lambda: now_ms)
    counts.register(metrics)
    for taken_ms in (10.0, 30.0):
        counts.succeeded_again("A", taken_ms)
    now_ms += 40_000
    counts.succeeded_again("A", 5.0)
    counts.succeeded_again("B", 7.0)

    assert shown(metrics, "reauthentication_latency_avg") == {"A": 15.0, "B": 7.0}
    assert shown(metrics, "reauthentication_latency_max") == {"A": 30.0, "B": 7.0}
    now_ms += 30_000
    assert shown(metrics, "reauthentication_latency_max") == {"A": 5.0, "B": 7.0}
    now_ms += 60_001
    assert all(map(math.isnan, shown(metrics, "reauthentication_latency_avg").values()))
    assert all(map(math.isnan, shown(metrics, "reauthentication_latency_max").values()))
    assert shown(metrics, "successful_reauthentication") == {"A": 3.0, "B": 1.0}


def test_tls_and_sasl_count_together() -> None:
    metrics = Metrics()
    counts_of(metrics).failed("A", is_repeated=False)
    counts_of(metrics).failed("A", is_repeated=False)

    assert shown(metrics, "failed_authentication") == {"A": 2.0}
