"""Run the tests: first side by side on all processors, then those marked `serial` one after the other.

    python -m tests.run [--quick | --soak] [--workers N] [pytest's arguments]

The last line counts all passes together, as pytest's own closing line would. A file's tests stay in one worker, because
a module's tests share a broker. The exit code is 0 only if every pass ran to its end and nothing failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

SERIAL = "serial"
QUICK = "round_trip or (not integration and not slow)"
SOAK = "soak or hypothesis"
GOOD_ENDINGS = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
WHOLE_PASSES = {*GOOD_ENDINGS, pytest.ExitCode.TESTS_FAILED}


def main(arguments: Sequence[str] | None = None) -> int:
    options, rest = _parser().parse_known_args(arguments)
    chosen = [options.marks] if options.marks else []
    if options.quick:
        chosen.append(QUICK)
    if options.soak:
        chosen.append(SOAK)
        rest = ["--hypothesis-profile=soak", "--timeout=0", *rest]
    # In the order of conftest.py, the longest first; xdist by itself begins with the files that have most tests.
    beside = [f"--numprocesses={options.workers}", "--dist=loadfile", "--no-loadscope-reorder"]
    passes = [([*chosen, f"not {SERIAL}"], [*beside, *rest]), ([*chosen, SERIAL], rest)]

    started_at = time.monotonic()
    counts: Counter[str] = Counter()
    endings: list[int] = []
    for marks, words in passes:
        ending, found = run_pass(marks, words)
        endings.append(ending)
        counts += found
        if ending not in WHOLE_PASSES:
            break
    print(closing_line(counts, time.monotonic() - started_at), flush=True)
    return next((ending for ending in endings if ending not in GOOD_ENDINGS), 0 if counts else endings[0])


def run_pass(marks: Sequence[str], words: Sequence[str]) -> tuple[int, Counter[str]]:
    """Run pytest once for the tests that have all the marks: its exit code, and how many tests ended how."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        # Twice quiet: pytest then leaves its closing line to us.
        expression = " and ".join(f"({mark})" for mark in marks)
        command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", "-m", expression, *words]
        ending = subprocess.run(command, check=False).returncode
        return ending, outcomes(report.read_text()) if report.exists() else Counter()


def outcomes(report: str) -> Counter[str]:
    """What a report in JUnit's form counts, in pytest's words."""
    counts: Counter[str] = Counter()
    for suite in ElementTree.fromstring(report).iter("testsuite"):
        counts += Counter({"failed": int(suite.get("failures", 0)), "skipped": int(suite.get("skipped", 0))})
        counts += Counter({"error": int(suite.get("errors", 0)), "passed": int(suite.get("tests", 0))})
    counts["passed"] -= counts["failed"] + counts["skipped"] + counts["error"]
    return +counts


def closing_line(counts: Counter[str], seconds: float) -> str:
    """`12 passed, 1 failed, 2 skipped in 3.45s`: what there was none of is left out."""
    parts = [f"{counts[name]} {name}" for name in ("passed", "failed", "skipped", "error") if counts[name]]
    plural = "s" if counts["error"] > 1 else ""
    return f"{', '.join(parts) or 'no tests ran'}{plural} in {seconds:.2f}s"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__, allow_abbrev=False)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="unit, component, and one round trip a client library")
    kind.add_argument("--soak", action="store_true", help="many repetitions, and random examples")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: the processors")
    parser.add_argument("-m", dest="marks", default="", help="pytest's -m, on top of what each pass chooses")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
