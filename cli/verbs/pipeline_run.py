"""`kavka pipeline run FILE [--once | --every 30s]`: run a job until it is stopped, or until all is read."""

import argparse
from pathlib import Path

from kavka.cli.pipelines.jobs import add_job_argument, duration

HELP = "run a job: until Ctrl-C or SIGTERM, or --once; without brokers in the file, with one of its own"
EXAMPLE = "kavka pipeline run examples/page_visits/pipeline.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser)
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="read what is there now, then end")
    when.add_argument(
        "--every", type=duration, metavar="30s", help="from one batch to the next; else the file's job.every (10s)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="for a file without brokers: an empty folder for what else is removed"
    )
    parser.add_argument("--verbose", action="store_true", help="show what Spark says, and stack traces")
    parser.add_argument(
        "--output",
        choices=("text", "json"),
        default="text",
        help="text for people (the default), or json, an event a line",
    )


def run(args: argparse.Namespace) -> int:
    from kavka.cli.pipelines.jobs import job_of, run_folder
    from kavka.cli.pipelines.running import run_and_show

    job = job_of(args)
    with run_folder(job, args.keep) as (running, folder):
        return run_and_show(args, running, folder)
