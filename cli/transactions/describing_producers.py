"""`kavka producers describe`, and the same under the name that Kafka's TransactionsCommand has for it."""

import argparse

from kavka.cli.argument_types import number
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of both."""
    parser.add_argument("--topic", required=True, metavar="TOPIC")
    parser.add_argument("--partition", type=number(0, 2**31 - 1), metavar="N", help="default: all of the topic")
    parser.add_argument(
        "--broker-id", type=number(0, 2**31 - 1), metavar="ID", help="ask this replica in place of the leader"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Raises KafkaError; what was found is shown before."""
    from kavka.cli.failing import tried
    from kavka.cli.transactions.hanging import Scope, partitions_in
    from kavka.cli.transactions.listing import producers_table

    with open_admin(args) as admin:
        partitions = partitions_in(admin, Scope(args.topic, args.partition, args.broker_id))
        found, failure = tried(lambda: admin.describe_producers(partitions, broker_id=args.broker_id))
    show(args, producers_table("producers-describe", found))
    if failure is not None:
        raise failure
    return 0
