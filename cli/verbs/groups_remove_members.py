"""`kavka groups remove-members`: members of a classic group have to go; who still lives joins anew."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.groups.choosing import add_group_argument
from kavka.cli.showing import Report, add_output_arguments, escaped, show

HELP = "have members leave a classic group; those that live join again"
EXAMPLE = "kavka groups remove-members --group billing --group-instance-id worker-1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_argument(parser)
    parser.add_argument("--member-id", action="append", default=[], metavar="ID", help="this member; again for others")
    parser.add_argument(
        "--group-instance-id", action="append", default=[], metavar="ID", help="this static member; again for others"
    )
    parser.add_argument("--all-members", action="store_true", help="all that the group has")
    parser.add_argument("--reason", default="removed by kavka groups remove-members", help="what the broker notes")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.groups.choosing import outcomes, raise_failures
    from kavka.cli.parsing import WRONG_USAGE
    from kavka.client.admin.types.groups import MemberToRemove
    from kavka.client.kafka_error import KafkaError

    leaving = [MemberToRemove(member_id=each) for each in args.member_id]
    leaving += [MemberToRemove(group_instance_id=each) for each in args.group_instance_id]
    if bool(leaving) == args.all_members:
        hint = "give --member-id and --group-instance-id, or --all-members"
        raise Failure("it is not clear which members are to go", hint, WRONG_USAGE)
    failures: dict[MemberToRemove, KafkaError] = {}
    with open_admin(args) as admin:
        if args.all_members:
            removed = admin.remove_group_members(args.group, reason=args.reason)
        else:
            removed, failures = outcomes(
                leaving, lambda asked: admin.remove_group_members(args.group, asked, reason=args.reason)
            )
    rows = [
        {"group": args.group, "member_id": each.member_id or None, "group_instance_id": each.group_instance_id}
        for each in removed
    ]
    lines = [escaped(f"removed {each.group_instance_id or each.member_id}") for each in removed]
    show(args, Report("groups-remove-members", rows, lambda: lines))
    names = {each.group_instance_id or each.member_id: error for each, error in failures.items()}
    raise_failures("removing members", names, removed)
    return 0
