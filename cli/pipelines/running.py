"""A run of a job, as people and programs see it, and how it is stopped."""

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.stop_signals import StopSignals
from kavka.cli.failing import Failure
from kavka.cli.output import emit, flush
from kavka.cli.pipelines.jobs import parts_of
from kavka.cli.progress import Update, has_terminal, progress
from kavka.cli.showing import Table, table_lines
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.run_lock import RunningAlreadyError
from kavka.pipeline.running.runner import How, RefusedError, RunError, run_job
from kavka.pipeline.running.stopping import Stopping

if TYPE_CHECKING:
    from kavka.pipeline.running.job_file import Job

INTERRUPTED: Final = 130
TERMINATED: Final = 143


def run_and_show(args: argparse.Namespace, job: "Job", folder: Path) -> int:
    """Run it, with paths from the folder on; the exit code: 130 after Ctrl-C, 143 for SIGTERM before all was read.

    Signals are blocked before the job's parts are loaded: numpy's libraries start threads, which a signal would reach.
    Raises Failure.
    """
    every_ms = interval_ms(args, job)
    is_once = every_ms is None
    stopping, signals = Stopping(), StopSignals()
    _listen(signals, stopping)
    parts = parts_of(job, folder)
    with progress(f"{job.name}: starting Spark", is_wanted=args.output == "text") as update:
        shown = _as_json if args.output == "json" else _AsText(update)
        how = How(every_ms, args.verbose, shown)
        try:
            run_job(job, parts, how, stopping)
        except RefusedError as error:
            raise Failure(str(error)) from error
        except RunError as error:
            raise Failure(str(error), _where_more_is(args, job)) from error
        except RunningAlreadyError as error:
            raise Failure(str(error)) from error
        finally:
            signals.stopped()
    if isinstance(shown, _AsText):
        shown.summarise()
    flush()
    if signals.received == "SIGINT":
        return INTERRUPTED
    return TERMINATED if is_once and signals.received is not None else 0


def interval_ms(args: argparse.Namespace, job: "Job") -> int | None:
    """From one batch to the next, 0: one after the other; None: what is there now, and no more."""
    if args.once or job.source.embedded is not None:
        return None
    return job.every_ms if args.every is None else int(args.every)


def _where_more_is(args: argparse.Namespace, job: "Job") -> str:
    if args.verbose:
        return ""
    is_kept = job.source.embedded is None or args.keep is not None
    if is_kept and job.checkpoint is not None:
        return f"{Places(job.checkpoint).log} has more"
    return "--verbose shows more"


def _listen(signals: StopSignals, stopping: Stopping) -> None:
    """From now on the signals stop the run between batches; a second one ends it at once."""
    signals.start()

    def wait() -> None:
        signals.wait()
        stopping.ask()

    threading.Thread(target=wait, name="stop", daemon=True).start()


def _as_json(event: dict[str, Any]) -> None:
    emit(json.dumps(event))
    flush()


class _AsText:
    """Events as lines: a live one on a terminal, else one a batch on standard error; tables on standard output."""

    def __init__(self, update: Update) -> None:
        self._update = update
        self._is_live = has_terminal()
        self._rows: dict[str, list[int]] = {}
        self._lines: dict[str, str] = {}

    def __call__(self, event: dict[str, Any]) -> None:
        """One of `run_job`'s events."""
        kind = event["event"]
        if kind == "batch":
            total = self._rows.setdefault(event["sink"], [0, 0])
            total[0] += 1
            total[1] += event["rows"]
            rate = f", {event['rows_per_s']:,.0f}/s" if event["rows"] else ""
            self._say(
                event["sink"], f"batch {event['batch_id']}: {event['rows']:,} rows in {event['batch_ms']} ms{rate}"
            )
        elif kind == "note":
            self._say(event["sink"], event["note"])
        elif kind == "metrics":
            self._say("metrics", f"http://{event['address']}/metrics")
        elif kind == "table":
            emit(f"{event['title']}")
            for line in table_lines(Table("", event["columns"], event["rows"])):
                emit(line)
            emit("")

    def summarise(self) -> None:
        """What was read, when all is done."""
        rows = [(sink, batches, count) for sink, (batches, count) in self._rows.items()]
        for line in table_lines(Table("", ("sink", "batches", "rows"), rows)):
            emit(line)

    def _say(self, part: str, text: str) -> None:
        if self._is_live:
            self._lines[part] = text
            self._update(0, "; ".join(f"{name} {line}" for name, line in self._lines.items()))
        else:
            print(f"{part}: {text}", file=sys.stderr, flush=True)
