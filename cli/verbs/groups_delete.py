"""`kavka groups delete`: groups without members go, with all that they have committed."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.groups.choosing import add_group_arguments
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "delete groups that have no members, with their offsets"
EXAMPLE = "kavka groups delete --group billing --group shipping"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.groups.choosing import chosen_groups, outcomes, raise_failures

    with open_admin(args) as admin:
        deleted, failures = outcomes(chosen_groups(args, admin), admin.delete_groups)
    rows = [{"group": group_id} for group_id in deleted]
    show(args, Report("groups-delete", rows, lambda: (escaped(f"deleted {group_id}") for group_id in deleted)))
    raise_failures("deleting groups", failures, deleted)
    return 0
