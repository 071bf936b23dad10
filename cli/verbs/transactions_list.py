"""`kavka transactions list`: the transactional ids of all coordinators."""

import argparse

from kavka.cli.argument_types import number
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "list transactional ids, and how far their transactions are"
EXAMPLE = "kavka transactions list --state Ongoing --duration-filter 60000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        choices=("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
        help="only those in this state; repeatable",
    )
    parser.add_argument(
        "--producer-id", action="append", default=[], type=number(), metavar="ID", help="of this producer; repeatable"
    )
    parser.add_argument(
        "--duration-filter", type=number(-1), default=-1, metavar="MS", help="open for longer (Kafka 3.8 on)"
    )
    parser.add_argument(
        "--transactional-id-pattern", metavar="REGEX", help="ids that match, in RE2's syntax (Kafka 4.1 on)"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.transactions.listing import coordinators_of, listing_table
    from kavka.client.admin.item_errors import ItemErrors
    from kavka.client.admin.types.transactions import TransactionState

    with open_admin(args) as admin:
        try:
            listed = admin.list_transactions(
                states=[TransactionState(state) for state in args.state],
                producer_ids=args.producer_id,
                longer_than_ms=args.duration_filter,
                transactional_id_pattern=args.transactional_id_pattern,
            )
            failure = None
        except ItemErrors as failed:
            # Some brokers did not answer: what the others said is shown.
            listed = [each for found in failed.results.values() for each in found]
            failure = failed
        table = listing_table(listed, coordinators_of(admin, listed))
    show(args, table)
    if failure is not None:
        raise failure
    return 0
