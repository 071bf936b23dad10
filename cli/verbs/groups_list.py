"""`kavka groups list`: groups of all types, with their states."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import Report, Table, add_output_arguments, escaped, show

HELP = "list groups with their types and states"
EXAMPLE = "kavka groups list --state stable,empty --type consumer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", nargs="?", const="", metavar="STATES", help="only groups in these: stable,empty")
    parser.add_argument("--type", nargs="?", const="", metavar="TYPES", help="only these: classic,consumer,share")
    parser.add_argument("--ids", action="store_true", help="the groups' ids alone, one a line")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.groups.choosing import listed_groups, names_of
    from kavka.client.admin.types.groups import GroupState, GroupType

    states, types = names_of(GroupState, args.state, "--state"), names_of(GroupType, args.type, "--type")
    with open_admin(args) as admin:
        found, failure = listed_groups(admin, states=states, types=types)
    rows = [(each.group_id, each.type.value, each.protocol_type, each.state.value) for each in found]
    table = Table("groups-list", ("group", "type", "protocol", "state"), rows)
    if args.ids and args.output == "text":
        show(args, Report(table.name, (), lambda: (escaped(each.group_id) for each in found)))
    else:
        show(args, table)
    if failure is not None:
        raise failure
    return 0
