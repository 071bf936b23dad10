"""`kavka diff clusters --to-bootstrap-server OTHER`: how two clusters differ."""

import argparse

from kavka.cli.connecting import add_connection_arguments
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "show how two clusters differ: topics, their settings, the brokers' settings, features"
EXAMPLE = "kavka diff clusters --to-bootstrap-server other:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.differing.two_clusters import add_other_arguments

    parser.add_argument("--exclude-internal", action="store_true", help="leave internal topics out")
    add_other_arguments(parser, required=True)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.differing.comparing import COLUMNS, cluster_rows
    from kavka.cli.differing.two_clusters import both

    with both(args) as (left, right):
        rows = cluster_rows(left, right, exclude_internal=args.exclude_internal)
    show(args, Table("diff", COLUMNS, rows))
    return 1 if rows else 0
