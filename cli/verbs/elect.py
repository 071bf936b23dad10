"""`kavka elect --election-type preferred|unclean ...`: has leaders elected, as kafka-leader-election."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "have preferred leaders elected, or unclean ones where there are none"
EXAMPLE = "kavka elect --election-type preferred --all-topic-partitions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--election-type",
        type=str.lower,
        choices=("preferred", "unclean"),
        required=True,
        help="unclean: of partitions without a leader, though records be lost",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all-topic-partitions", action="store_true", help="wherever it is needed")
    which.add_argument("--topic", metavar="TOPIC", help="of this topic, with --partition")
    which.add_argument("--path-to-json-file", metavar="FILE", help="of the file's partitions")
    parser.add_argument("--partition", type=int, metavar="N", help="of --topic; without it, all of them")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.electing import elected, named_partitions

    partitions = named_partitions(args)
    with open_admin(args) as admin:
        rows, failure = elected(admin, args, partitions)
    show(args, Table("elect", ("topic", "partition", "result"), rows))
    if failure is not None:
        raise failure
    return 0
