"""`kavka pipeline deadletter show|retry FILE`: rows that a job could not use, and another try for them."""

import argparse

from kavka.cli.argument_types import number
from kavka.cli.pipelines.jobs import add_job_argument
from kavka.cli.showing import add_output_arguments

HELP = "show a job's dead letters with reason and source, or send them back to where they came from"
EXAMPLE = "kavka pipeline deadletter show visits.toml\nkavka pipeline deadletter retry visits.toml"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("show", "retry"), help="show them, or send them back, each once")
    add_job_argument(parser)
    parser.add_argument("--limit", type=number(1), default=100, metavar="N", help="show: no more than so many (100)")
    parser.add_argument("--reason", metavar="REGEX", help="retry: those whose reason matches somewhere")
    parser.add_argument("--to-topic", metavar="TOPIC", help="retry: to this one, and not where they came from")
    parser.add_argument(
        "--max-retries", type=number(1), default=3, metavar="N", help="retry: pass over what was tried so often (3)"
    )
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.pipelines.dead_letters import retry_and_show, show_letters

    return show_letters(args) if args.action == "show" else retry_and_show(args)
