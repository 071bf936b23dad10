"""`kavka features disable`: as a downgrade to level 0."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "have the cluster do without features"
EXAMPLE = "kavka features disable --feature group.version"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--feature", action="append", required=True, metavar="NAME", help="may be repeated")
    parser.add_argument("--unsafe", action="store_true", help="even if metadata are lost by that")
    parser.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.features import CHANGED, downgrade_type, updated

    with open_admin(args) as admin:
        rows, failure = updated(admin, dict.fromkeys(args.feature, 0), downgrade_type(args), dry_run=args.dry_run)
    show(args, Table("features-update", CHANGED, rows))
    if failure is not None:
        raise failure
    return 0
