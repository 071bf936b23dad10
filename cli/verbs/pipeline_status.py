"""`kavka pipeline status FILE`: how far a job is, while it runs and after."""

import argparse

from kavka.cli.pipelines.jobs import add_job_argument
from kavka.cli.showing import add_output_arguments, show

HELP = "show how far a job is: offsets, lag, rows, last batches; exit code 1 if its last run failed"
EXAMPLE = "kavka pipeline status visits.toml --output json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.pipelines.jobs import job_of
    from kavka.cli.pipelines.status import read_status, report

    found = read_status(job_of(args))
    show(args, report(found))
    return 1 if found["state"] == "failed" else 0
