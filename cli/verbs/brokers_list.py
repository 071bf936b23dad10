"""`kavka brokers list`: who the brokers are and where."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "list the brokers, their addresses and racks"
EXAMPLE = "kavka brokers list --bootstrap-server localhost:9092"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.members import COLUMNS, member_rows

    with open_admin(args) as admin:
        rows = member_rows(admin)
    show(args, Table("brokers-list", COLUMNS, rows))
    return 0
