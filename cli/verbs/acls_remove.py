"""`kavka acls remove`: removes entries; those that were not there are no failure."""

import argparse

from kavka.cli.acls.arguments import add_entry_arguments, add_resource_arguments
from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "remove entries, after asking"
EXAMPLE = """kavka acls remove --allow-principal User:alice --producer --topic orders
kavka acls remove --topic orders --force"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_resource_arguments(parser)
    add_entry_arguments(parser)
    parser.add_argument("--force", action="store_true", help="ask nobody")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.acls.acl_table import acl_table
    from kavka.cli.acls.entries import removal_filters
    from kavka.cli.acls.removing import matching, remove
    from kavka.cli.confirming import confirm
    from kavka.cli.counting import counted

    filters = removal_filters(args)
    with open_admin(args) as admin:
        if not args.force:
            found = matching(admin, filters)
            if found and not confirm(f"Remove {counted(len(found), 'entry', 'entries')}?"):
                return 1
        removed, failure = remove(admin, filters)
    show(args, acl_table(removed))
    if failure is not None:
        raise failure
    return 0
