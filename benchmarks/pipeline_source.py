"""Reads of a topic by Spark: its own Kafka source beside Kavka's, over TCP and from segment files.

    .venv/bin/python -m benchmarks.pipeline_source --records 2000000 --rounds 3

All read from one Kavka broker on this machine into Spark's `noop` sink, in turns, and medians are compared. Spark's
source is tuned: 20,000 records a poll and fetches of 8 MB. A round of each before them counts for nothing.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kavka.client import Admin, NewTopic, Producer
from tests.support.kavka_process import KavkaProcess
from tests.support.spark_session import spark_session

TOPIC = "read"
SPARK = {"spark.driver.memory": "2g"}
VALUE = bytes(range(100))
TUNED = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "8388608",
    "kafka.isolation.level": "read_committed",
}


def fill(servers: str, records: int, partitions: int) -> None:
    """So many records of 100 bytes, shared out among the partitions."""
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(TOPIC, partitions)])
    with Producer(bootstrap_servers=servers, batch_size=1_000_000, linger_ms=20, buffer_memory=256 << 20) as producer:
        for number in range(records):
            producer.send(TOPIC, VALUE, partition=number % partitions)


def whole_reads(spark: SparkSession, servers: str, path: Path) -> dict[str, Callable[[], DataFrame]]:
    """All columns of all partitions."""

    def read(name: str, **options: str) -> DataFrame:
        given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, **options}
        return spark.read.format(name).options(**given).load()

    return {
        "Spark's own": lambda: read("kafka", **TUNED),
        "kavka, TCP": lambda: read("kavka"),
        "kavka, files": lambda: read("kavka", path=str(path)),
    }


def partition_reads(spark: SparkSession, servers: str, partitions: int) -> dict[str, Callable[[], DataFrame]]:
    """One partition of them."""
    last = partitions - 1

    def read(name: str, **options: str) -> DataFrame:
        return spark.read.format(name).options(**{"kafka.bootstrap.servers": servers, **options}).load()

    one = f'{{"{TOPIC}":[{last}]}}'
    return {
        "Spark's own, filter": lambda: read("kafka", subscribe=TOPIC, **TUNED).where(f"partition = {last}"),
        "Spark's own, assign": lambda: read("kafka", assign=one, **TUNED),
        "kavka, filter": lambda: read("kavka", subscribe=TOPIC, pushdown="true").where(f"partition = {last}"),
        "kavka, assign": lambda: read("kavka", assign=one),
    }


def measured(reads: dict[str, Callable[[], DataFrame]], rounds: int, records: int) -> None:
    """Print seconds and rates, each beside the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in reads}
    for number in range(rounds + 1):
        for name, read in reads.items():
            began_s = time.monotonic()
            read().write.format("noop").mode("overwrite").save()
            if number:
                seconds[name].append(time.monotonic() - began_s)
    first = statistics.median(next(iter(seconds.values())))
    for name, taken in seconds.items():
        median = statistics.median(taken)
        shown = " ".join(f"{each:.2f}" for each in taken)
        print(f"{name:22} {median:7.2f} s  {records / median / 1e6:6.2f} M/s  {first / median:5.2f}x  ({shown})")


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=6)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with KavkaProcess(folder / "broker") as broker, spark_session(folder / "spark", SPARK) as spark:
            fill(broker.bootstrap, chosen.records, chosen.partitions)
            spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
            print(f"{chosen.records} records of 100 bytes in {chosen.partitions} partitions")
            measured(whole_reads(spark, broker.bootstrap, broker.log_dir), chosen.rounds, chosen.records)
            print("one partition")
            one = chosen.records // chosen.partitions
            measured(partition_reads(spark, broker.bootstrap, chosen.partitions), chosen.rounds, one)


if __name__ == "__main__":
    main()
