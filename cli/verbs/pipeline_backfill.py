"""`kavka pipeline backfill FILE [--to-topic TOPIC]`: what a topic has lost to retention, out of the lake."""

import argparse

from kavka.cli.pipelines.replaying import add_replay_arguments

HELP = "send what a topic has lost to retention, or all of one that is gone, out of a job's lake"
EXAMPLE = "kavka pipeline backfill visits.toml --to-topic page_visits.whole"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_replay_arguments(parser)
    parser.add_argument("--to-topic", metavar="TOPIC", help="where to; by default the topic itself")


def run(args: argparse.Namespace) -> int:
    from kavka.cli.pipelines.replaying import replay_and_show

    return replay_and_show(args, args.to_topic, is_backfill=True)
