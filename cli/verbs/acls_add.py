"""`kavka acls add`: allows or denies somebody something."""

import argparse

from kavka.cli.acls.arguments import add_entry_arguments, add_resource_arguments
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "allow or deny somebody something"
EXAMPLE = """kavka acls add --allow-principal User:alice --producer --topic orders
kavka acls add --allow-principal User:bob --consumer --topic orders --group readers
kavka acls add --deny-principal User:eve --operation Read --topic pay --resource-pattern-type prefixed"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_resource_arguments(parser)
    add_entry_arguments(parser)
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.acls.acl_table import acl_table
    from kavka.cli.acls.entries import bindings
    from kavka.cli.failing import tried

    wanted = bindings(args)
    with open_admin(args) as admin:
        added, failure = tried(lambda: admin.create_acls(wanted))
    show(args, acl_table(added))
    if failure is not None:
        raise failure
    return 0
