"""`kavka topics delete TOPIC ...`: topics and all their records."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "delete topics with all their records"
EXAMPLE = "kavka topics delete orders payments --if-exists"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.topics.naming import add_topic_arguments

    add_topic_arguments(parser, which="deleted")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is no failure")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.changing import deleted
    from kavka.cli.topics.naming import chosen

    with open_admin(args) as admin:
        # `--topic '.*'` is not to take away what all groups have committed.
        names = chosen(admin, args, exclude_internal=True)
        rows, failure = deleted(admin, names, if_exists=args.if_exists)
    show(args, Table("topics-delete", ("deleted",), rows))
    if failure is not None:
        raise failure
    return 0
