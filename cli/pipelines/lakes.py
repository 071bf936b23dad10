"""The lake that a job archives to, and the brokers that it reads from, for commands that go the other way."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from kavka.pipeline.lake.archive import ArchiveSettings
    from kavka.pipeline.running.job_file import Job


def add_lake_arguments(parser: argparse.ArgumentParser) -> None:
    """Which of a job's archives is meant."""
    parser.add_argument("--sink", metavar="NAME", help="the archive, where the file has several")


def lake_path(args: argparse.Namespace, job: "Job") -> Path:
    """The archive's folder. Raises Failure."""
    return Path(str(_settings(args, job).get("path", "")))


def archive_of(args: argparse.Namespace, job: "Job") -> "ArchiveSettings":
    """The archive's settings. Raises Failure, also for a table of another kind than Kavka's own."""
    from kavka.pipeline.lake.archive import archive_settings
    from kavka.pipeline.running.tables import SettingError, Table

    settings = _settings(args, job)
    if settings.get("table", "parquet") != "parquet":
        message = f"{job.path}: a table of {settings['table']} is compacted by its own tools"
        raise Failure(message, exit_code=WRONG_USAGE)
    try:
        return archive_settings(Table(settings))
    except SettingError as error:
        raise Failure(f"{job.path}: {error}", exit_code=WRONG_USAGE) from error


def _settings(args: argparse.Namespace, job: "Job") -> dict[str, object]:
    """The chosen archive's, with absolute paths. Raises Failure."""
    from kavka.pipeline.running.parts import absolute

    archives = {table.name: table for table in job.sinks if table.kind == "archive"}
    if args.sink is None and len(archives) == 1:
        (chosen,) = archives.values()
    elif args.sink in archives:
        chosen = archives[args.sink]
    elif args.sink is not None:
        there = ", ".join(archives) or "none"
        raise Failure(f"{job.path} has no archive {args.sink}", f"there are {there}", WRONG_USAGE)
    elif not archives:
        raise Failure(f"{job.path} has no sink of kind archive", exit_code=WRONG_USAGE)
    else:
        raise Failure(f"{job.path} has several archives", f"--sink {' or --sink '.join(archives)}", WRONG_USAGE)
    return absolute(job.folder, chosen.settings)


def broker_settings(job: "Job") -> dict[str, str]:
    """A client's, for the job's brokers; references are not resolved. Raises Failure."""
    from kavka.pipeline.running.job_file import BOOTSTRAP
    from kavka.pipeline.running.source_options import client_settings

    settings = client_settings(job.source.options)
    if BOOTSTRAP not in settings:
        raise Failure(f"{job.path}: source.{BOOTSTRAP} is missing", "name the brokers", WRONG_USAGE)
    return settings


def lake_topic(args: argparse.Namespace, path: Path) -> str:
    """`--topic`, or the only one that the lake has. Raises Failure."""
    from kavka.pipeline.lake.errors import LakeError
    from kavka.pipeline.lake.lake import Lake

    try:
        topics = sorted(Lake(path).next_offsets())
    except LakeError as error:
        raise Failure(str(error)) from error
    if args.topic is not None:
        if args.topic not in topics:
            raise Failure(f"{path} has nothing of topic {args.topic}", f"there are {', '.join(topics) or 'none'}")
        return str(args.topic)
    if len(topics) != 1:
        raise Failure(f"{path} has {', '.join(topics) or 'no topic yet'}", "--topic says which", WRONG_USAGE)
    return topics[0]
