"""Job files as commands take them: what is wrong with one is a line, and wrong usage."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from kavka.cli.argument_types import checked
from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from kavka.pipeline.running.job_file import Job
    from kavka.pipeline.running.parts import Parts


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """The file that every one of them takes."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a job file (TOML, docs/pipeline.md)")


def job_of(args: argparse.Namespace) -> "Job":
    """The file's job. Raises Failure."""
    from kavka.pipeline.running.job_file import JobFileError, read_job

    try:
        return read_job(args.file)
    except JobFileError as error:
        raise Failure(str(error), exit_code=WRONG_USAGE) from error


@contextmanager
def run_folder(job: "Job", keep: Path | None) -> "Iterator[tuple[Job, Path]]":
    """The job with a checkpoint, and from where on its paths are meant: for one that keeps nothing, a folder that goes.

    `keep` is a folder that stays in its place. Raises Failure, OSError.
    """
    if job.checkpoint is not None:
        if keep is not None:
            raise Failure("--keep is for a file without job.checkpoint", exit_code=WRONG_USAGE)
        yield job, job.folder
    elif keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise Failure(f"--keep {keep}: there is something in it", "its broker is new, and nothing goes on from it")
        yield replace(job, checkpoint=keep.absolute() / "checkpoint"), keep.absolute()
    else:
        with TemporaryDirectory(prefix="kavka-pipeline-") as folder:
            yield replace(job, checkpoint=Path(folder) / "checkpoint"), Path(folder)


def duration(text: str) -> int:
    """For `type=`: milliseconds of `30s`."""
    from kavka.cli.moments import duration_ms

    return checked(duration_ms)(text)


def parts_of(job: "Job", folder: Path | None = None) -> "Parts":
    """What the job is made of, with paths from the folder on, by default the file's.

    Raises Failure, also where the extra is not installed.
    """
    from kavka.pipeline.running.job_file import JobFileError
    from kavka.pipeline.running.parts import MissingExtraError, load_parts

    try:
        return load_parts(job, folder)
    except JobFileError as error:
        raise Failure(str(error), exit_code=WRONG_USAGE) from error
    except MissingExtraError as error:
        raise Failure(str(error)) from error


def extra_is_there() -> None:
    """Raises Failure where a package of the extra is missing."""
    from importlib.util import find_spec

    from kavka.pipeline.running.parts import EXTRA

    for name in ("pyspark", "pyarrow", "pandas"):
        if find_spec(name) is None:
            raise Failure(f"{name} is not installed: {EXTRA}")
