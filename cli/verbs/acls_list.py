"""`kavka acls list`: who may do what."""

import argparse

from kavka.cli.acls.arguments import add_resource_arguments
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "list who may do what"
EXAMPLE = """kavka acls list --group readers
kavka acls list --topic orders --resource-pattern-type match --principal User:alice"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_resource_arguments(parser)
    parser.add_argument(
        "--principal", action="append", default=[], metavar="TYPE:NAME", help="only entries of this principal"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.acls.acl_table import acl_table
    from kavka.cli.acls.entries import listing_filters
    from kavka.cli.acls.removing import matching

    filters = listing_filters(args)
    with open_admin(args) as admin:
        show(args, acl_table(matching(admin, filters)))
    return 0
