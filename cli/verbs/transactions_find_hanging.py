"""`kavka transactions find-hanging`: transactions that readers wait behind, and that nobody will end."""

import argparse

from kavka.cli.argument_types import number, wrong
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "find transactions that are open, and that no coordinator will end"
EXAMPLE = "kavka transactions find-hanging --topic visits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="TOPIC", help="look there (default: in all topics)")
    parser.add_argument("--partition", type=number(0, 2**31 - 1), metavar="N", help="of the topic")
    parser.add_argument("--broker-id", type=number(0, 2**31 - 1), metavar="ID", help="look at this broker's replicas")
    parser.add_argument(
        "--max-transaction-timeout",
        type=number(),
        default=15,
        metavar="MINUTES",
        help="the brokers' transaction.max.timeout.ms: what has been open for less is not looked at (default 15)",
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import time

    from kavka.cli.transactions.hanging import Scope, find_hanging, hanging_table

    if args.partition is not None and args.topic is None:
        raise wrong("--partition needs --topic")
    scope = Scope(args.topic, args.partition, args.broker_id)
    now_ms = time.time_ns() // 1_000_000
    with open_admin(args) as admin:
        found = find_hanging(admin, scope, args.max_transaction_timeout * 60_000, now_ms)
    show(args, hanging_table(found, now_ms))
    return 0
