"""`kavka features upgrade`: has the cluster agree on higher levels."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.settings_text import level
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "have the cluster agree on higher levels of features"
EXAMPLE = "kavka features upgrade --feature transaction.version=2"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--feature", action="append", type=level, required=True, metavar="NAME=LEVEL", help="may be repeated"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say whether it could be done")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.cluster.features import CHANGED, updated
    from kavka.client.admin.types.cluster import UpgradeType

    with open_admin(args) as admin:
        rows, failure = updated(admin, dict(args.feature), UpgradeType.UPGRADE, dry_run=args.dry_run)
    show(args, Table("features-update", CHANGED, rows))
    if failure is not None:
        raise failure
    return 0
