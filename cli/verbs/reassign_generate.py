"""`kavka reassign generate`: a whole new assignment of topics to brokers, as Kafka's tool makes it."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.output import emit
from kavka.cli.reassign.arguments import add_own_broker_list

HELP = "deal topics' replicas to brokers anew, as Kafka's --generate (plan moves less)"
EXAMPLE = "kavka reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--topics-to-move-json-file",
        required=True,
        metavar="FILE",
        help='the topics, as {"version": 1, "topics": [{"topic": "orders"}]}',
    )
    parser.add_argument("--disable-rack-aware", action="store_true", help="leave racks aside")
    add_connection_arguments(parser)
    add_own_broker_list(parser, required=True)


def run(args: argparse.Namespace) -> int:
    import random

    from kavka.cli.reassign.json_files import reassignment_text
    from kavka.cli.reassign.making import generated

    count = len(args.broker_list)
    with open_admin(args) as admin:
        current, proposed = generated(
            admin, args, start_index=random.randrange(count), start_shift=random.randrange(count)
        )
    emit(f"Current partition replica assignment\n{reassignment_text(current)}\n")
    emit(f"Proposed partition reassignment configuration\n{reassignment_text(proposed)}")
    return 0
