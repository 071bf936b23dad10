"""Job files as commands take them: what is wrong with one is a line, and wrong usage."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

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


def parts_of(job: "Job") -> "Parts":
    """What the job is made of. Raises Failure, also where the extra is not installed."""
    from kavka.pipeline.running.job_file import JobFileError
    from kavka.pipeline.running.parts import MissingExtraError, load_parts

    try:
        return load_parts(job)
    except JobFileError as error:
        raise Failure(str(error), exit_code=WRONG_USAGE) from error
    except MissingExtraError as error:
        raise Failure(str(error)) from error
