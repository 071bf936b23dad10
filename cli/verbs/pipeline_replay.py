"""`kavka pipeline replay FILE --to-topic TOPIC [--from TIME] [--to TIME]`: history out of the lake into a topic."""

import argparse

from kavka.cli.pipelines.replaying import add_replay_arguments

HELP = "send a job's lake, or a time of it, to a topic again: in order, with its times and partitions, each row once"
EXAMPLE = "kavka pipeline replay visits.toml --to-topic page_visits.again --from 2026-01-01 --to 2026-02-01"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_replay_arguments(parser)
    parser.add_argument("--to-topic", required=True, metavar="TOPIC", help="where to; as many partitions as there were")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.pipelines.replaying import replay_and_show

    return replay_and_show(args, args.to_topic, is_backfill=False)
