"""A thousand brokers and some clusters, one after the other in one process: nothing of them is left."""

import gc
import threading
from pathlib import Path

import pytest

from kavka.testing import Broker, Cluster
from tests.support.processes import wait_until

pytestmark = pytest.mark.soak

CYCLES = 1000
CLUSTERS = 50
WARM_UP = 20
MAY_GROW_BYTES = 24 << 20


def held() -> tuple[list[str], int]:
    return sorted(thread.name for thread in threading.enumerate()), len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def use(broker: Broker | Cluster) -> None:
    broker.create_topic("orders")
    broker.produce("orders", ["x"])
    broker.assert_records("orders", ["x"])


def go_through(brokers: int, clusters: int) -> None:
    for number in range(brokers):
        with Broker() as broker:
            if number % 10 == 0:
                use(broker)
    for _ in range(clusters):
        with Cluster(3) as cluster:
            use(cluster)
            cluster.kill(cluster.leader_of("orders"))


@pytest.mark.timeout(3600)
def test_a_thousand_starts_and_stops_leave_threads_descriptors_and_memory_as_they_were() -> None:
    go_through(WARM_UP, WARM_UP)
    gc.collect()
    before, resident = held(), resident_bytes()
    go_through(CYCLES, CLUSTERS)
    gc.collect()
    wait_until(lambda: held() == before, 60, lambda: f"{before} has become {held()}")
    assert resident_bytes() - resident < MAY_GROW_BYTES
