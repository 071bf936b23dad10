"""`kavka diff topics LEFT [RIGHT]`: how a topic differs from another."""

import argparse

from kavka.cli.connecting import add_connection_arguments
from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "show how a topic differs from another one, or from itself in another cluster"
EXAMPLE = "kavka diff topics orders payments\nkavka diff topics orders --to-bootstrap-server other:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.differing.two_clusters import add_other_arguments

    parser.add_argument("left", metavar="LEFT", help="a topic")
    parser.add_argument(
        "right", nargs="?", metavar="RIGHT", help="the other; the same name, if another cluster is named"
    )
    parser.add_argument("--all", action="store_true", help="also settings that come from the brokers")
    add_other_arguments(parser, required=False)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.differing.comparing import COLUMNS, topic_rows
    from kavka.cli.differing.two_clusters import both

    if args.right is None and args.to_bootstrap_server is None and args.to_profile is None:
        raise Failure(f"{args.left} is compared with what?", "name another topic or cluster", WRONG_USAGE)
    with both(args) as (left, right):
        rows = topic_rows(left, right, (args.left, args.right or args.left), with_defaults=args.all)
    show(args, Table("diff", COLUMNS, rows))
    return 1 if rows else 0
