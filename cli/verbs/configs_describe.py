"""`kavka configs describe`: settings of topics, brokers, loggers, groups, clients; as kafka-configs --describe."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "show settings of topics, brokers, loggers, groups and clients"
EXAMPLE = "kavka configs describe --topic orders --all\nkavka configs describe --entity-type brokers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.configs.entities import add_entity_arguments

    parser.add_argument("--all", action="store_true", help="also what was not set for it")
    add_entity_arguments(parser)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.configs.describing import describe
    from kavka.cli.configs.entities import entities_of

    entities = entities_of(args)
    with open_admin(args) as admin:
        report, failure = describe(admin, entities, show_all=args.all)
    show(args, report)
    if failure is not None:
        raise failure
    return 0
