"""A job on Spark's standalone cluster, by one setting: workers are killed, one and then both, and it ends exact."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest

from examples.page_visits.produce import create_topic, produce_visits
from examples.page_visits.visits import generate_visits
from kavka.pipeline.lake.lake import Lake
from kavka.testing import Broker
from tests.support.processes import Process, wait_until

REPOSITORY = Path(__file__).parents[3]
SPARK_CLASS = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
KAVKA = [sys.executable, "-m", "kavka", "pipeline"]
LIMIT_S = 900
WAVE = 5000
JOB = """
[job]
name = "visits"
checkpoint = "state"
every = "500ms"

[spark]
master = "{master}"
conf = {{ "spark.executor.memory" = "512m", "spark.executor.cores" = "1", "spark.driver.host" = "127.0.0.1" }}

[source]
bootstrap.servers = "{bootstrap}"
subscribe = "page_visits"
startingOffsets = "earliest"
maxOffsetsPerTrigger = "2000"

[[sinks]]
kind = "archive"
path = "lake"
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.java,
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here"),
]


class Cluster:
    """A master and its workers, each a process of pyspark's own jars."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._made = 0
        # Workers give it to their executors, whose Python has to find this package.
        self._env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}
        master = self._started("master.Master", "--port", "0", "--webui-port", "0")
        self.url = master.wait_for_log(r"(spark://[\w.]+:\d+)", LIMIT_S)[1]

    def worker(self) -> Process:
        """One more, of one core."""
        made = self._started("worker.Worker", "--cores", "1", "--memory", "700m", "--webui-port", "0", self.url)
        made.wait_for_log("Successfully registered with master", LIMIT_S)
        return made

    def _started(self, name: str, *words: str) -> Process:
        self._made += 1
        folder = self._folder / f"{self._made}-{name}"
        folder.mkdir()
        own = ["--work-dir", str(folder)] if name.startswith("worker") else []
        command = [SPARK_CLASS, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *own, *words]
        return self._stack.enter_context(Process(command, folder / "log", env=self._env))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def test_a_job_loses_one_worker_and_then_all_and_is_exact(cluster: Cluster, tmp_path: Path) -> None:
    first, second = cluster.worker(), cluster.worker()
    file = tmp_path / "job.toml"
    log = tmp_path / "run.out"
    with Broker() as broker:
        create_topic(broker.bootstrap_servers)
        file.write_text(JOB.format(master=cluster.url, bootstrap=broker.bootstrap_servers))

        def produce(seed: int) -> None:
            produce_visits(broker.bootstrap_servers, list(generate_visits(WAVE, seed)), acks="all")

        produce(1)
        with Process([*KAVKA, "run", str(file), "--output", "json"], log) as run:
            wait_until(lambda: archived(tmp_path, WAVE), LIMIT_S, log.read_text)
            produce(2)
            first.kill()
            wait_until(lambda: archived(tmp_path, 2 * WAVE), LIMIT_S, log.read_text)
            second.kill()
            produce(3)
            run.wait_for_log("no executor of spark://", LIMIT_S)
            assert not archived(tmp_path, 3 * WAVE)
            cluster.worker()
            wait_until(lambda: archived(tmp_path, 3 * WAVE), LIMIT_S, log.read_text)
            assert run.stop(LIMIT_S) == 0
    rows = Lake(tmp_path / "lake").to_arrow(["partition", "offset"]).to_pylist()
    assert len(rows) == 3 * WAVE
    assert len({(row["partition"], row["offset"]) for row in rows}) == 3 * WAVE


def archived(folder: Path, count: int) -> bool:
    """Whether the lake has so many rows by now."""
    if not (folder / "lake" / "_kavka" / "manifest").is_dir():
        return False
    return sum(each.rows for each in Lake(folder / "lake").files()) >= count
