"""`kavka features describe`: what brokers support, and what they have agreed on."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "show the features that brokers support, and those that they have agreed on"
EXAMPLE = "kavka features describe"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node-id", type=int, metavar="BROKER", help="what this broker supports")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.features import COLUMNS, rows

    with open_admin(args) as admin:
        found = rows(admin, args.node_id)
    show(args, Table("features-describe", COLUMNS, found))
    return 0
