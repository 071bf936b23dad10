"""`python -m benchmarks.security`: what security costs, against Apache Kafka 3.9 and against Kavka without it.

As `benchmarks.run`: rows one after another, rounds in turn, medians; in a quarter of an hour. A run of all rows is
written to benchmarks/SECURITY.md.

- Kavka with a thousand ACLs, quotas far off and clients that came by SASL, against Kavka with nothing configured.
- Kavka against Apache Kafka 3.9, both with the same TLS listeners, key stores (PKCS12, an RSA key) and cipher.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmarks import librdkafka
from benchmarks.contestants import Contestant
from benchmarks.report import TABLE_HEADINGS, Report
from benchmarks.row import Row, Scale
from benchmarks.rows.security import AGAINST_KAFKA, BY_ITSELF
from benchmarks.run import build_parser, is_named, run_rows, scale_of
from benchmarks.security_contestants import SecureKafka, SecureKavka, WithoutSecurity, WithSecurity

RESULTS: Final = Path(__file__).with_name("SECURITY.md")
KAFKA_IN_FULL: Final = "Apache Kafka 3.9, heap 1 GiB"
ROUNDS_BY_ITSELF: Final = 11
"""Two brokers of a kind differ by little, and a machine's mood by more: medians of five moved by a quarter."""
WARM_S: Final = 2.0
"""No compiler is warmed there."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen rows; 1 if one of them failed (a missed goal is a result, not a failure)."""
    arguments = build_parser("python -m benchmarks.security", __doc__).parse_args(argv)
    by_itself, against_kafka = (
        [row for row in rows if not arguments.rows or is_named(row, arguments.rows)]
        for rows in (BY_ITSELF, AGAINST_KAFKA)
    )
    if arguments.list or not (by_itself or against_kafka):
        for row in (*BY_ITSELF, *AGAINST_KAFKA):
            print(f"{row.name:26} {row.title}")
        return 0 if arguments.list else 2
    librdkafka.build(with_tls=True)
    given = sys.argv[1:] if argv is None else argv
    scale = scale_of(arguments)
    own_scale = replace(scale, warm_seconds=WARM_S, rounds=arguments.rounds or max(scale.rounds, ROUNDS_BY_ITSELF))
    arguments.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.dir, prefix="bench-security-") as folder:
        itself = Report("python -m benchmarks.security", given, kafka="without")
        pair = [WithSecurity(Path(folder, "with")), WithoutSecurity(Path(folder, "without"))]
        _run(by_itself, pair, own_scale, itself, arguments)
        kafka = Report("python -m benchmarks.security", given, kafka="Kafka 3.9", kafka_in_full=KAFKA_IN_FULL)
        settings = dict(item.split("=", 1) for item in arguments.kavka_setting)
        brokers = [SecureKavka(Path(folder), settings), SecureKafka(Path(folder))]
        _run(against_kafka, brokers, scale, kafka, arguments)
    if not (arguments.rows or arguments.only or arguments.quick or arguments.no_write):
        RESULTS.write_text(kafka.markdown() + _section(itself))
    return 1 if kafka.has_failures or itself.has_failures else 0


def _run(
    rows: Sequence[Row],
    contestants: Sequence[Contestant],
    scale: Scale,
    report: Report,
    arguments: argparse.Namespace,
) -> None:
    able = [one for one in contestants if arguments.only in (None, one.name)]
    try:
        run_rows(rows, able, scale, report, ())
    finally:
        for contestant in able:
            contestant.release()


def _section(report: Report) -> str:
    """The table of Kavka by itself."""
    replaced = {"Kavka's CPU, s": "with: CPU, s", "Kafka's CPU, s": "without: CPU, s"}
    headings = [replaced.get(each, each.replace("Kavka / Kafka", "with / without")) for each in TABLE_HEADINGS]
    headings[headings.index("Kavka") : headings.index("Kavka") + 2] = ["with", "without"]
    lines = [
        "",
        "Kavka with a thousand ACLs, quotas far off and clients that came by SASL, against Kavka with nothing of it:",
        "",
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
        *("| " + " | ".join(row) + " |" for row in report.rows),
        "",
    ]
    if report.notes:
        lines += ["Not measured:", "", *(f"- {' '.join(note.split())}" for note in report.notes), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
