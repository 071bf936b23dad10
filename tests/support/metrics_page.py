"""What a broker's /metrics says."""

import urllib.request
from collections.abc import Callable

from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until

TIMEOUT_S = 60.0


def metric(broker: KavkaProcess, name: str) -> float:
    """The value of a metric that has no labels. The broker needs the override metrics.port=0."""
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics", timeout=TIMEOUT_S) as page:
        for line in page.read().decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
    raise KeyError(name)


def wait_for_metric(broker: KavkaProcess, name: str, wanted: Callable[[float], bool]) -> float:
    """Poll until the metric has a wanted value, and return that."""
    seen = [0.0]

    def as_wanted() -> bool:
        seen[0] = metric(broker, name)
        return wanted(seen[0])

    wait_until(as_wanted, TIMEOUT_S, lambda: f"{name} stays at {seen[0]}")
    return seen[0]
