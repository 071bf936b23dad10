"""What a sink is given before its first batch, without a job: a folder, brokers, and what it has reported."""

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession

from kavka.pipeline.running.sink import RunContext


class Reports:
    """Counts what a sink tells. Threads: one."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()

    def add(self, counter: str, amount: int) -> None:
        """Count."""
        self.counted[counter] += amount

    def note(self, text: str) -> None:
        """Nobody reads it."""


def run_of(spark: SparkSession, directory: Path, bootstrap_servers: str, query_id: str, reports: Reports) -> RunContext:
    """A run of query `query_id`, whose sink keeps its notes in the folder."""
    return RunContext(
        spark=spark,
        job="visits",
        name="sink",
        query_id=query_id,
        checkpoint=directory,
        directory=directory,
        client_settings={"bootstrap.servers": bootstrap_servers},
        source={},
        report=reports,
    )
