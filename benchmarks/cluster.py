"""`python -m benchmarks.cluster`: three Kavka brokers against three of Apache Kafka 3.9, each on one ZooKeeper.

As `benchmarks.run`: rows one after another, both warmed, rounds in turn, medians. CPU seconds are the sum of all three
brokers'. A run of all rows is written to benchmarks/CLUSTER.md.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import librdkafka
from benchmarks.cluster_contestants import ClusterContestant, KafkaCluster, KavkaCluster
from benchmarks.report import Report
from benchmarks.row import Row
from benchmarks.rows import cluster_failover, cluster_produce
from benchmarks.run import build_parser, is_named, run_rows, scale_of

RESULTS = Path(__file__).with_name("CLUSTER.md")
ROWS: tuple[Row, ...] = (*cluster_produce.ROWS, *cluster_failover.ROWS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen rows; 1 if one of them failed (a missed goal is a result, not a failure)."""
    arguments = build_parser("python -m benchmarks.cluster", __doc__).parse_args(argv)
    chosen = [row for row in ROWS if not arguments.rows or is_named(row, arguments.rows)]
    if arguments.list or not chosen:
        for row in ROWS:
            print(f"{row.name:26} {row.title}")
        return 0 if arguments.list else 2
    librdkafka.build()
    report = Report(
        "python -m benchmarks.cluster",
        sys.argv[1:] if argv is None else argv,
        kafka="Kafka 3.9",
        kafka_in_full="Apache Kafka 3.9, heaps 512 MiB",
    )
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix="bench-cluster-") as folder:
        settings = dict(item.split("=", 1) for item in arguments.kavka_setting)
        contestants: list[ClusterContestant] = [KavkaCluster(Path(folder), settings), KafkaCluster(Path(folder))]
        contestants = [one for one in contestants if arguments.only in (None, one.name)]
        try:
            run_rows(chosen, contestants, scale_of(arguments), report, cluster_failover.ROWS)
        finally:
            for contestant in contestants:
                contestant.release()
    if not (arguments.rows or arguments.only or arguments.quick or arguments.no_write):
        report.write(RESULTS)
    return 1 if report.has_failures else 0


if __name__ == "__main__":
    sys.exit(main())
