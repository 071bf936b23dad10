"""`kavka diff brokers LEFT RIGHT`: how a broker's settings differ from another's."""

import argparse

from kavka.cli.connecting import add_connection_arguments
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "show how a broker's settings differ from another's"
EXAMPLE = "kavka diff brokers 1 2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.differing.two_clusters import add_other_arguments

    parser.add_argument("left", type=int, metavar="LEFT", help="a broker's id")
    parser.add_argument("right", type=int, metavar="RIGHT", help="the other's")
    parser.add_argument("--all", action="store_true", help="also those that are each broker's own, such as listeners")
    add_other_arguments(parser, required=False)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.differing.comparing import COLUMNS, broker_rows
    from kavka.cli.differing.two_clusters import both

    with both(args) as (left, right):
        rows = broker_rows(left, right, (args.left, args.right), show_all=args.all)
    show(args, Table("diff", COLUMNS, rows))
    return 1 if rows else 0
