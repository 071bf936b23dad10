"""`kavka topics alter TOPIC ... --partitions N`: more partitions."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import count
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "give topics more partitions"
EXAMPLE = "kavka topics alter orders --partitions 12"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.topics.naming import add_topic_arguments

    add_topic_arguments(parser, which="changed")
    parser.add_argument("--partitions", type=count, metavar="N", required=True, help="how many there are to be in all")
    parser.add_argument(
        "--replica-assignment", metavar="1:2,2:3", help="the brokers of all partitions; those of the old ones stay"
    )
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is no failure")
    parser.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.changing import grown
    from kavka.cli.topics.naming import chosen

    with open_admin(args) as admin:
        rows, failure = grown(
            admin,
            # More partitions of an internal topic would send groups and transactions to others.
            chosen(admin, args, exclude_internal=True),
            args.partitions,
            args.replica_assignment,
            dry_run=args.dry_run,
            if_exists=args.if_exists,
        )
    show(args, Table("topics-alter", ("name", "partitions_before", "partitions"), rows))
    if failure is not None:
        raise failure
    return 0
