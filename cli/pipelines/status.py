"""What a run's file says of it, and whether the run still goes on."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.failing import Failure
from kavka.cli.moments import moment_text
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.showing import Report, Table, table_lines
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.run_lock import is_running
from kavka.pipeline.running.run_state import RUNNING

if TYPE_CHECKING:
    from kavka.pipeline.running.job_file import Job

KILLED: Final = "killed"
"""The file says that it runs, and nobody does: it ended without an end in order."""


def read_status(job: "Job") -> dict[str, Any]:
    """The last run's, or that of the one that goes on. Raises Failure."""
    if job.checkpoint is None:
        raise Failure(f"{job.path}: the job keeps nothing", "give it a job.checkpoint", WRONG_USAGE)
    places = Places(job.checkpoint)
    try:
        found = json.loads(places.status.read_text())
        if not isinstance(found, dict) or not isinstance(found.get("sinks"), list) or "state" not in found:
            raise ValueError("it is not what a run writes there")
    except FileNotFoundError:
        raise Failure(f"{job.path}: the job has not run yet", f"there is no {places.status}") from None
    except ValueError as error:
        raise Failure(f"{places.status}: {error}") from None
    if found["state"] == RUNNING and not is_running(places.lock):
        found["state"] = KILLED
    return found


def report(found: dict[str, Any]) -> Report:
    """As people see it, and as programs do."""
    return Report("pipeline-status", [found], lambda: _lines(found))


def _lines(found: dict[str, Any]) -> Iterable[str]:
    began, written = moment_text(found["began_at_ms"]), moment_text(found["written_at_ms"])
    yield f"{found['job']}: {found['state']}, process {found['pid']}, since {began}, as of {written}"
    if found["failure"]:
        yield f"failed by: {found['failure']}"
    columns = "sink", "batch", "at", "batch_ms", "rows", "rows_per_s", "lag", "late", "dead_letters", "waits_for"
    rows = [_row(each) for each in found["sinks"]]
    yield from table_lines(Table("", columns, rows))
    for sink in found["sinks"]:
        for topic, offsets in sink["offsets"].items():
            places = ", ".join(f"{number}: {offset}" for number, offset in offsets.items())
            yield f"{sink['name']} goes on in {topic} at {places}"


def _row(sink: dict[str, Any]) -> tuple[Any, ...]:
    counters = sink["counters"]
    return (
        sink["name"],
        sink["batch_id"],
        None if sink["batch_at_ms"] is None else moment_text(sink["batch_at_ms"]),
        sink["batch_ms"],
        sink["rows"],
        sink["rows_per_s"],
        sink["lag"],
        counters.get("late_rows", 0),
        counters.get("dead_letters", 0),
        sink["note"],
    )
