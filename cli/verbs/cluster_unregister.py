"""`kavka cluster unregister --id ID`: forgets a broker that is gone for good, as kafka-cluster unregister."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.output import emit

HELP = "have KRaft's controllers forget a broker that is gone for good"
EXAMPLE = "kavka cluster unregister --id 3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--id", type=int, required=True, metavar="BROKER", help="the broker's id")
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    with open_admin(args) as admin:
        admin.unregister_broker(args.id)
    emit(f"broker {args.id} is no longer registered")
    return 0
