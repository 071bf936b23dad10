"""`kavka quotas alter`: sets and removes quotas."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.quotas.arguments import add_entity_arguments

HELP = "set and remove quotas"
EXAMPLE = """kavka quotas alter --user alice --client app --add-config producer_byte_rate=1048576,request_percentage=50
kavka quotas alter --client-defaults --delete-config request_percentage
kavka quotas alter --ip 10.0.0.1 --add-config connection_creation_rate=10"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_entity_arguments(parser)
    parser.add_argument(
        "--add-config",
        action="append",
        default=[],
        metavar="NAME=NUMBER[,...]",
        help="producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of an ip"
        " connection_creation_rate",
    )
    parser.add_argument("--delete-config", action="append", default=[], metavar="NAME[,...]", help="no quota any more")
    parser.add_argument("--dry-run", action="store_true", help="only say whether the broker would do it")
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.quotas.changes import changes_of

    entity, changes = changes_of(args)
    with open_admin(args) as admin:
        admin.alter_client_quotas({entity: changes}, validate_only=args.dry_run)
    return 0
