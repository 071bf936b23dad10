"""`kavka brokers versions`: the versions that brokers serve of each API, as kafka-broker-api-versions."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import broker_ids
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "show the versions that brokers serve of each API"
EXAMPLE = "kavka brokers versions --broker 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker", type=broker_ids, metavar="ID[,...]", help="these brokers alone")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.members import VERSION_COLUMNS, version_rows

    with open_admin(args) as admin:
        rows = version_rows(admin, args.broker)
    show(args, Table("brokers-versions", VERSION_COLUMNS, rows))
    return 0
