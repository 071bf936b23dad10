"""`kavka transactions abort`: end a transaction that hangs on a partition."""

import argparse

from kavka.cli.argument_types import number, wrong
from kavka.cli.connecting import add_connection_arguments, open_admin

HELP = "abort a transaction that hangs on a partition"
EXAMPLE = "kavka transactions abort --topic visits --partition 0 --start-offset 42"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, metavar="TOPIC")
    parser.add_argument("--partition", required=True, type=number(0, 2**31 - 1), metavar="N")
    parser.add_argument("--start-offset", type=number(), metavar="OFFSET", help="where the transaction begins")
    group = parser.add_argument_group("in place of --start-offset, for brokers before 3.0")
    group.add_argument("--producer-id", type=number(), metavar="ID")
    group.add_argument("--producer-epoch", type=number(0, 2**15 - 1), metavar="N")
    group.add_argument("--coordinator-epoch", type=number(-1, 2**31 - 1), metavar="N")
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.transactions.hanging import start_of
    from kavka.client.admin.types.transactions import AbortTransactionSpec
    from kavka.client.topic_partition import TopicPartition

    by_hand = (args.producer_id, args.producer_epoch, args.coordinator_epoch)
    if (args.start_offset is None and None in by_hand) or (args.start_offset is not None and by_hand != (None,) * 3):
        raise wrong("give --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch")
    partition = TopicPartition(args.topic, args.partition)
    with open_admin(args) as admin:
        if args.start_offset is not None:
            found = start_of(admin, partition, args.start_offset)
            by_hand = (found.producer_id, found.producer_epoch, found.coordinator_epoch)
        producer_id, producer_epoch, coordinator_epoch = by_hand
        # -1: the producer has not ended a transaction there yet. Zero is no later than any coordinator's epoch.
        admin.abort_transaction(AbortTransactionSpec(partition, producer_id, producer_epoch, max(coordinator_epoch, 0)))
    return 0
