"""`kavka configs alter`: sets and deletes settings, as kafka-configs --alter."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import names, pairs
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "set and delete settings of topics, brokers, loggers, groups and clients"
EXAMPLE = "kavka configs alter --topic orders --add-config retention.ms=86400000 --delete-config cleanup.policy"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from kavka.cli.configs.entities import add_entity_arguments

    parser.add_argument(
        "--add-config", action="append", type=pairs, default=[], metavar="NAME=VALUE,NAME=[VALUE,VALUE]"
    )
    parser.add_argument("--add-config-file", metavar="FILE", help="what to set, as properties")
    parser.add_argument("--delete-config", action="append", type=names, default=[], metavar="NAME,NAME")
    parser.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
    add_entity_arguments(parser)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.configs.altering import alter, changes_of
    from kavka.cli.configs.entities import entities_of

    entities = entities_of(args)
    added, deleted = changes_of(args)
    with open_admin(args) as admin:
        rows = alter(admin, entities, added, deleted, dry_run=args.dry_run)
    show(args, Table("configs-alter", ("entity_type", "entity_name", "name", "value"), rows))
    return 0
