"""`kavka topics create TOPIC ...`: new topics."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import count, pair
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "create topics"
EXAMPLE = "kavka topics create orders --partitions 6 --replication-factor 3 --config cleanup.policy=compact"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help="the new topic's name; several may be given")
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="the same, as in Kafka's tool")
    parser.add_argument("--partitions", type=count, metavar="N", help="by default as the broker's num.partitions")
    parser.add_argument(
        "--replication-factor", type=count, metavar="N", help="by default as the broker's default.replication.factor"
    )
    parser.add_argument(
        "--replica-assignment", metavar="1:2,2:3", help="each partition's brokers, the preferred leader first"
    )
    parser.add_argument(
        "--config", action="append", type=pair, default=[], metavar="NAME=VALUE", help="a setting; may be repeated"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="a topic that is there already is no failure")
    parser.add_argument("--dry-run", action="store_true", help="only say whether they could be created")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.changing import created_rows, new_topics

    topics = new_topics(args)
    with open_admin(args) as admin:
        rows, failure = created_rows(admin, topics, dry_run=args.dry_run, if_not_exists=args.if_not_exists)
    show(args, Table("topics-create", ("name", "topic_id", "partitions", "replication_factor", "is_new"), rows))
    if failure is not None:
        raise failure
    return 0
