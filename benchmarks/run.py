"""`python -m benchmarks.run`: Kavka against Apache Kafka 4.3.1 on this machine, under the same load.

Rows run one after another: those of the table in benchmarks/RESULTS.md, or those asked for. In each, both brokers are
warmed by the row's own load (Kafka for a minute, so that its compiler has seen it), then measured in turn for several
rounds; medians are compared. Results are printed as they come; a run of the table is written to benchmarks/RESULTS.md.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import KafkaException

from benchmarks import librdkafka
from benchmarks.contestants import ApacheKafka, Contestant, Kavka
from benchmarks.librdkafka import LoadFailedError
from benchmarks.report import Report, Result
from benchmarks.row import Row, Scale, UnavailableError
from benchmarks.rows import (
    background,
    compaction,
    consume,
    groups,
    java,
    latency,
    lifecycle,
    loading,
    produce,
    transactions,
)
from tests.support.processes import ProcessDiedError

FULL = Scale(share=1.0, warm_seconds=60.0, rounds=3)
QUICK = Scale(share=0.1, warm_seconds=5.0, rounds=1)
DATA = librdkafka.CACHE.parent / "bench"
SHARED_ROWS: tuple[Row, ...] = (
    *produce.SHARED_ROWS,
    *consume.SHARED_ROWS,
    *latency.SHARED_ROWS,
    *java.SHARED_ROWS,
    *groups.SHARED_ROWS,
    *transactions.SHARED_ROWS,
)
OWN_ROWS: tuple[Row, ...] = (
    *produce.OWN_ROWS,
    *background.OWN_ROWS,
    *compaction.OWN_ROWS,
    *loading.OWN_ROWS,
    *lifecycle.OWN_ROWS,
)
TABLE = (
    "produce-100b",
    "produce-1000b",
    "produce-single",
    "produce-inflight1",
    "consume-6",
    "consume-read-committed",
    "latency-end-to-end",
    "commits-50",
    "rebalance-classic",
    "rebalance-consumer",
    "transactions-java",
    "compaction-beside",
    "start",
    "memory",
)
"""The rows that a reader of RESULTS.md sees, named in full."""
FAILURES = (LoadFailedError, ProcessDiedError, TimeoutError, OSError, UnavailableError, KafkaException)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen rows; 1 if one of them failed (a missed goal is a result, not a failure)."""
    arguments = build_parser("python -m benchmarks.run", __doc__).parse_args(argv)
    chosen = [row for row in (*SHARED_ROWS, *OWN_ROWS) if _is_chosen(row, arguments.rows)]
    if arguments.list or not chosen:
        for row in (*SHARED_ROWS, *OWN_ROWS):
            print(f"{row.name:26} {row.title}")
        return 0 if arguments.list else 2
    scale = scale_of(arguments)
    librdkafka.build()
    report = Report("make bench" if argv is None and not sys.argv[1:] else "python -m benchmarks.run", sys.argv[1:])
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix="bench-") as folder:
        settings = dict(item.split("=", 1) for item in arguments.kavka_setting)
        contestants: list[Contestant] = [Kavka(Path(folder), settings), ApacheKafka(Path(folder))]
        contestants = [one for one in contestants if arguments.only in (None, one.name)]
        try:
            run_rows(chosen, contestants, scale, report, OWN_ROWS)
        finally:
            for contestant in contestants:
                contestant.release()
    if not (arguments.rows or arguments.only or arguments.quick or arguments.no_write):
        report.write()
    return 1 if report.has_failures else 0


def run_rows(
    rows: Sequence[Row], contestants: Sequence[Contestant], scale: Scale, report: Report, own_rows: Sequence[Row]
) -> None:
    """`own_rows`: those that the shared brokers must not run beside."""
    for row in rows:
        if row in own_rows:
            for contestant in contestants:
                contestant.release()
        started_at = time.monotonic()
        result = run_row(row, contestants, scale)
        report.add(result, time.monotonic() - started_at)


def run_row(row: Row, contestants: Sequence[Contestant], scale: Scale) -> Result:
    """All rounds of one row, the contestants in turn; who fails is left out of the later rounds, with the reason."""
    result = Result(row)
    able = list(contestants)
    try:
        for contestant in contestants:
            if not _attempt(result, contestant, lambda one: _warm_up(row, one, scale)):
                able = [one for one in able if one is not contestant]
        for number in range(scale.rounds):
            # Who goes first changes: the page cache and the disk remember the one before.
            for contestant in able[:: 1 if number % 2 == 0 else -1]:
                _attempt(result, contestant, lambda one: result.record(one, row.run(one, scale)))
                if contestant.name in result.failures:
                    able = [one for one in able if one is not contestant]
    finally:
        for contestant in contestants:
            _attempt(result, contestant, row.clean)
    return result


def _attempt(result: Result, contestant: Contestant, act: Callable[[Contestant], None]) -> bool:
    try:
        act(contestant)
    except FAILURES as error:
        result.failures.setdefault(contestant.name, (type(error), str(error)))
        return False
    return True


def scale_of(arguments: argparse.Namespace) -> Scale:
    base = QUICK if arguments.quick else FULL
    return Scale(
        base.share,
        base.warm_seconds if arguments.warm is None else arguments.warm,
        arguments.rounds or base.rounds,
    )


def build_parser(program: str, text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=text)
    parser.add_argument("--rounds", type=int, help=f"measured rounds a row (default {FULL.rounds})")
    parser.add_argument(
        "--rows", default="", help="names or beginnings of names, separated by commas, or all (default: the table's)"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, one round, hardly any warm-up")
    parser.add_argument("--warm", type=float, metavar="SECONDS", help="warm-up of each row for Kafka")
    parser.add_argument("--only", choices=("kavka", "kafka"), help="run one broker alone")
    parser.add_argument("--kavka-setting", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--dir", type=Path, default=DATA, help="where the brokers' data go (default .cache/bench)")
    parser.add_argument(
        "--no-write",
        action="store_true",
        help="leave benchmarks/RESULTS.md as it is, as with --rows, --only and --quick",
    )
    parser.add_argument("--list", action="store_true", help="list the rows")
    return parser


def _is_chosen(row: Row, names: str) -> bool:
    return is_named(row, names) if names else row.name in TABLE


def is_named(row: Row, names: str) -> bool:
    """Whether a row's name is, or begins as, one of `names`."""
    return names == "all" or any(row.name.startswith(name.strip()) for name in names.split(",") if name.strip())


def _warm_up(row: Row, contestant: Contestant, scale: Scale) -> None:
    row.prepare(contestant, scale)
    if not row.warms:
        return
    deadline = time.monotonic() + scale.warm_seconds * contestant.warm_share
    while time.monotonic() < deadline:
        row.run(contestant, scale)


if __name__ == "__main__":
    sys.exit(main())
