"""`kavka logdirs describe`: the brokers' log directories and what lies in them, as kafka-log-dirs."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import broker_ids, names
from kavka.cli.showing import add_output_arguments, show

HELP = "show brokers' log directories, their sizes and the replicas in them"
EXAMPLE = "kavka logdirs describe --broker-list 1,2 --topic-list orders"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker-list", type=broker_ids, metavar="ID[,...]", help="of these brokers alone")
    parser.add_argument("--topic-list", type=names, metavar="TOPIC[,...]", help="replicas of these topics alone")
    parser.add_argument("--partitions", action="store_true", help="people are shown each replica too")
    add_connection_arguments(parser, broker_list_means_ids=True)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.log_dirs import describe

    with open_admin(args) as admin:
        report, failure = describe(admin, args)
    show(args, report)
    if failure is not None:
        raise failure
    return 0
