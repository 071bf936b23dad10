"""A job file against the checkpoint of its last run: what goes on, and what needs a new checkpoint."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kavka.pipeline.running.job_file import Job, SinkTable
from kavka.pipeline.running.places import Places
from kavka.pipeline.running.query_files import CheckpointError, QueryFiles, read_query_files
from kavka.storage.files import TEMPORARY_SUFFIX, Files

NEW: Final = "new"
GOES_ON: Final = "goes on"
CHANGED: Final = "goes on changed"
NEEDS_NEW: Final = "needs a new checkpoint"
GONE: Final = "gone"

_MAY_CHANGE: Final = {
    "archive": frozenset({"target_file_bytes", "partition_by", "keep_hours", "compression", "rows_per_file"}),
    "topic": frozenset({"transaction_timeout"}),
}
"""Settings of sinks that a query may go on with; all others would mix two things in one place."""
_STARTING: Final = frozenset({"startingoffsets", "startingtimestamp", "startingoffsetsbytimestamp"})
_TOPICS: Final = frozenset({"subscribe", "subscribepattern", "assign"})


class Finding(NamedTuple):
    """What is to be said about a part of the job."""

    part: str
    state: str
    note: str


def declared(job: Job) -> dict[str, Any]:
    """What a checkpoint remembers of its job file. References to secrets stay references."""
    tables = [*job.sinks, *([job.dead_letters] if job.dead_letters is not None else [])]
    return {
        "name": job.name,
        "source": {"format": job.source.format, "options": dict(job.source.options)},
        "schema": job.schema,
        "transforms": [{"function": each.function, "sql": each.sql} for each in job.transforms],
        "sinks": {table.name: {"kind": table.kind, "settings": dict(table.settings)} for table in tables},
    }


def remember(job: Job, places: Places, name: str) -> None:
    """Have the checkpoint know what the file says now, of the sinks that of `name` alone: its query has started.

    The others stay as they were, so that what they go on with is judged by what they began with. So do those that are
    gone from the file, as long as their checkpoint is there. Raises CheckpointError, OSError.
    """
    now = declared(job)
    before = _read(places)
    known = {} if before is None else before["sinks"]
    kept = {each: known[each] for each in known if each in now["sinks"] or _has_checkpoint(places, each)}
    now["sinks"] = {**kept, name: now["sinks"][name]}
    temporary = Path(f"{places.declared}{TEMPORARY_SUFFIX}")
    temporary.unlink(missing_ok=True)
    temporary.touch(0o600)
    Files().write_atomically(places.declared, json.dumps(now, indent=1).encode())


def _has_checkpoint(places: Places, name: str) -> bool:
    return (places.query(name) / "metadata").is_file()


def compared(job: Job) -> list[Finding]:
    """What a run would do now. Raises CheckpointError, OSError."""
    if job.checkpoint is None:
        return [Finding("job", NEW, "the source is embedded: each run begins anew, and keeps nothing")]
    places = Places(job.checkpoint)
    tables = [*job.sinks, *([job.dead_letters] if job.dead_letters is not None else [])]
    queries = {table.name: read_query_files(places.query(table.name)) for table in tables}
    before = _read(places)
    if before is None:
        return [_beginning(table, queries[table.name]) for table in tables]
    now = json.loads(json.dumps(declared(job)))
    findings = list(_about_source(before["source"], now["source"], is_used=any(queries.values())))
    changed = [part for part in ("schema", "transforms") if before[part] != now[part]]
    findings += [Finding(part, CHANGED, "holds from the next batch on") for part in changed]
    known = before["sinks"]
    findings += [_about_sink(places, table, known.get(table.name), queries[table.name]) for table in tables]
    gone = sorted(name for name in known.keys() - now["sinks"].keys() if _has_checkpoint(places, name))
    return findings + [Finding(f"sink {name}", GONE, f"its checkpoint stays: {places.query(name)}") for name in gone]


def _read(places: Places) -> dict[str, Any] | None:
    try:
        found = json.loads(places.declared.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CheckpointError(f"{places.declared}: {error}") from None
    if not isinstance(found, dict) or not {"source", "schema", "transforms", "sinks"} <= found.keys():
        raise CheckpointError(f"{places.declared}: it is not what a run writes there")
    return found


def _beginning(table: SinkTable, query: QueryFiles | None) -> Finding:
    note = "begins where the source says" if query is None else f"from batch {query.committed + 1} on"
    return Finding(f"sink {table.name}", NEW if query is None else GOES_ON, note)


def _about_source(before: Mapping[str, Any], now: Mapping[str, Any], *, is_used: bool) -> Iterator[Finding]:
    if before["format"] != now["format"]:
        yield Finding(
            "source", CHANGED, f"read by {now['format']} in place of {before['format']}, from the same offsets"
        )
    old = {name.lower(): value for name, value in before["options"].items()}
    new = {name.lower(): value for name, value in now["options"].items()}
    different = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    for name in sorted(different):
        if name in _TOPICS:
            yield Finding("source", CHANGED, f"{name}: topics that are new begin at their first offset")
        elif name in _STARTING and is_used:
            yield Finding("source", GOES_ON, f"{name}: has no effect on queries with a checkpoint")
        else:
            yield Finding("source", CHANGED, f"{name}: holds from the next batch on")


def _about_sink(
    places: Places, table: SinkTable, before: Mapping[str, Any] | None, query: QueryFiles | None
) -> Finding:
    part = f"sink {table.name}"
    if before is None or query is None:
        return _beginning(table, query)
    now = json.loads(json.dumps(dict(table.settings)))
    reset = f"give it another name, or move {places.query(table.name)} away"
    if before["kind"] != table.kind:
        return Finding(part, NEEDS_NEW, f"it was of kind {before['kind']}: {reset}")
    old = before["settings"]
    different = {name for name in old.keys() | now.keys() if old.get(name) != now.get(name)}
    fixed = sorted(different - _MAY_CHANGE.get(table.kind, frozenset()))
    if fixed:
        return Finding(part, NEEDS_NEW, f"{', '.join(fixed)} changed: {reset}")
    note = f"from batch {query.committed + 1} on"
    if different:
        return Finding(part, CHANGED, f"{note}; {', '.join(sorted(different))} changed")
    return Finding(part, GOES_ON, note)
