"""`kavka pipeline check FILE`: a job file, without Spark, and what its checkpoint says to it."""

import argparse

from kavka.cli.pipelines.jobs import add_job_argument
from kavka.cli.showing import BAD, WARN, Table, add_output_arguments, show

HELP = "look at a job file, and what goes on from its checkpoint; exit code 1 if a part needs a new one"
EXAMPLE = "kavka pipeline check examples/page_visits/pipeline.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.pipelines.jobs import job_of, parts_of
    from kavka.pipeline.running.checking import CHANGED, GONE, NEEDS_NEW, compared
    from kavka.pipeline.running.query_files import CheckpointError

    job = job_of(args)
    parts_of(job)
    try:
        findings = compared(job)
    except CheckpointError as error:
        raise Failure(str(error)) from error
    tints = {NEEDS_NEW: BAD, CHANGED: WARN, GONE: WARN}
    columns = "part", "state", "note"
    show(args, Table("pipeline-check", columns, findings, lambda row: tints.get(str(row[1]))))
    return 1 if any(finding.state == NEEDS_NEW for finding in findings) else 0
