"""Reads of a topic by Spark: its own Kafka source beside Kavka's, over TCP and from segment files.

    .venv/bin/python -m benchmarks.pipeline_source --records 2000000 --rounds 3

All read from one Kavka broker on this machine into Spark's `noop` sink, in turns, and medians are compared: wall time,
and CPU seconds of driver JVM, Python workers and broker together. Spark's source is tuned: 20,000 records a poll and
fetches of 8 MB. A round of each before them counts for nothing.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

from benchmarks.process_trees import cpu_s
from kavka.client import Admin, NewTopic, Producer
from kavka.pipeline.schemas.decoding import decoder
from tests.support.kavka_process import KavkaProcess
from tests.support.spark_session import spark_session

TOPIC = "read"
EVENTS = "events"
FIELDS = "time timestamp, site string, ip string, hits int, rate double"
SPARK = {"spark.driver.memory": "2g"}
VALUE = bytes(range(100))
HOURS = 48
"""Over so many the records' timestamps are spread; one of them is read by itself."""
FIRST_MS = 1_700_000_000_000
LAST_HOUR_MS = FIRST_MS + (HOURS - 1) * 3_600_000
TUNED = {
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": "8388608",
    "kafka.fetch.max.bytes": "8388608",
    "kafka.isolation.level": "read_committed",
}


Read = Callable[[], DataFrame]


def fill(servers: str, records: int, partitions: int) -> None:
    """So many records of 100 bytes, and as many of JSON, each shared out among the partitions of a topic."""
    with Admin(bootstrap_servers=servers) as admin:
        kept = {"retention.ms": "-1"}
        admin.create_topics([NewTopic(name, partitions, configs=kept) for name in (TOPIC, EVENTS)])
    with Producer(bootstrap_servers=servers, batch_size=1_000_000, linger_ms=20, buffer_memory=256 << 20) as producer:
        for number in range(records):
            at_ms = FIRST_MS + number * HOURS * 3_600_000 // records
            producer.send(TOPIC, VALUE, partition=number % partitions, timestamp_ms=at_ms)
            producer.send(EVENTS, event(number), partition=number % partitions)


def event(number: int) -> bytes:
    """One row of `FIELDS`, an absent text in every third."""
    ip = f"10.0.{number % 200}.{number % 250}" if number % 3 else None
    row = {"time": "2024-01-01T00:00:00Z", "site": f"site-{number % 50}", "ip": ip, "hits": number, "rate": number / 8}
    return json.dumps(row).encode()


def whole_reads(spark: SparkSession, servers: str, path: Path) -> dict[str, Read]:
    """All columns of all partitions."""

    def read(name: str, **options: str) -> DataFrame:
        given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, **options}
        return spark.read.format(name).options(**given).load()

    return {
        "Spark's own": lambda: read("kafka", **TUNED),
        "kavka, TCP": lambda: read("kavka"),
        "kavka, files": lambda: read("kavka", path=str(path)),
    }


def partition_reads(spark: SparkSession, servers: str, partitions: int) -> dict[str, Read]:
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


def last_hour_reads(spark: SparkSession, servers: str) -> dict[str, Read]:
    """The records of the last of all hours."""

    def read(name: str, **options: str) -> DataFrame:
        given = {"kafka.bootstrap.servers": servers, "subscribe": TOPIC, **options}
        return spark.read.format(name).options(**given).load()

    since = f"timestamp >= timestamp_millis({LAST_HOUR_MS})"
    start = str(LAST_HOUR_MS)
    return {
        "Spark's own, filter": lambda: read("kafka", **TUNED).where(since),
        "Spark's own, start": lambda: read("kafka", startingTimestamp=start, **TUNED),
        "kavka, filter": lambda: read("kavka", pushdown="true").where(since),
        "kavka, start": lambda: read("kavka", startingTimestamp=start),
    }


def json_reads(spark: SparkSession, servers: str, path: Path) -> dict[str, Read]:
    """JSON to columns: by Spark's `from_json`, and by the pipeline's decoder."""

    def read(name: str, **options: str) -> DataFrame:
        given = {"kafka.bootstrap.servers": servers, "subscribe": EVENTS, **options}
        return spark.read.format(name).options(**given).load()

    def by_spark() -> DataFrame:
        text = col("value").cast("string")
        return read("kafka", **TUNED).select("partition", "offset", from_json(text, FIELDS).alias("row"))

    def ours(**options: str) -> DataFrame:
        return decoder({"format": "json", "fields": FIELDS}).decode(read("kavka", **options))[0]

    return {"Spark's own": by_spark, "kavka, TCP": ours, "kavka, files": lambda: ours(path=str(path))}


def measured(reads: dict[str, Read], rounds: int, records: int, pids: tuple[int, ...]) -> None:
    """Print seconds, rates and CPU seconds of the processes, each beside the first one's."""
    seconds: dict[str, list[float]] = {name: [] for name in reads}
    cpus: dict[str, list[float]] = {name: [] for name in reads}
    for number in range(rounds + 1):
        for name, read in reads.items():
            used_s, began_s = cpu_s(*pids), time.monotonic()
            read().write.format("noop").mode("overwrite").save()
            if number:
                seconds[name].append(time.monotonic() - began_s)
                cpus[name].append(cpu_s(*pids) - used_s)
    first = statistics.median(next(iter(seconds.values())))
    first_cpu = statistics.median(next(iter(cpus.values())))
    for name, taken in seconds.items():
        median, cpu = statistics.median(taken), statistics.median(cpus[name])
        shown = " ".join(f"{each:.2f}" for each in taken)
        rate = f"{records / median / 1e6:6.2f} M/s  {first / median:5.2f}x"
        print(f"{name:22} {median:7.2f} s  {rate}  CPU {cpu:6.2f} s  {cpu / first_cpu:5.2f}x  ({shown})", flush=True)


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
            gateway = spark.sparkContext._gateway
            if gateway is None:
                raise RuntimeError("Spark has no JVM of its own")
            pids = gateway.proc.pid, broker.process.pid
            print(f"{chosen.records} records of 100 bytes in {chosen.partitions} partitions, and as many of JSON")
            measured(whole_reads(spark, broker.bootstrap, broker.log_dir), chosen.rounds, chosen.records, pids)
            print("one partition")
            one = chosen.records // chosen.partitions
            measured(partition_reads(spark, broker.bootstrap, chosen.partitions), chosen.rounds, one, pids)
            print(f"the last hour of {HOURS}")
            measured(last_hour_reads(spark, broker.bootstrap), chosen.rounds, chosen.records // HOURS, pids)
            print("JSON")
            measured(json_reads(spark, broker.bootstrap, broker.log_dir), chosen.rounds, chosen.records, pids)


if __name__ == "__main__":
    main()
