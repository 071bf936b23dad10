"""`kavka topics describe [TOPIC ...]`: topics, their partitions and who has them."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "show topics, their partitions and who has them"
EXAMPLE = "kavka topics describe orders\nkavka topics describe --under-replicated-partitions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.topics.naming import add_topic_arguments, uuid_of

    add_topic_arguments(parser, which="shown")
    parser.add_argument("--topic-id", type=uuid_of, action="append", default=[], metavar="ID", help="a topic by its id")
    parser.add_argument("--exclude-internal", action="store_true", help="leave internal topics out")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is no failure")
    only = parser.add_argument_group("only some").add_mutually_exclusive_group()
    only.add_argument("--topics-with-overrides", action="store_true", help="topics that have settings of their own")
    for name, meaning in (
        ("under-replicated", "with fewer replicas in sync than they have"),
        ("unavailable", "whose leader is not available"),
        ("under-min-isr", "with fewer replicas in sync than min.insync.replicas"),
        ("at-min-isr", "with just min.insync.replicas in sync"),
    ):
        only.add_argument(f"--{name}-partitions", action="store_const", const=name, dest="only", help=meaning)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.describing import describe

    with open_admin(args) as admin:
        report, failure = describe(admin, args)
    show(args, report)
    if failure is not None:
        raise failure
    return 0
