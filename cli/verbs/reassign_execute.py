"""`kavka reassign execute`: begins a reassignment, shows how far it is, and removes its throttles when it is done."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.reassign.arguments import add_file_argument, add_limit_arguments, add_timeout_argument
from kavka.cli.showing import add_output_arguments, show

HELP = "move partitions as a file says, and wait until they are there"
EXAMPLE = """kavka reassign execute --reassignment-json-file plan.json --dry-run
kavka reassign execute --reassignment-json-file plan.json --throttle 50000000 --rollback-json-file before.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file_argument(parser)
    add_limit_arguments(parser)
    add_timeout_argument(parser)
    parser.add_argument(
        "--additional", action="store_true", help="even if others go on; also to change the throttle of one that does"
    )
    parser.add_argument("--rollback-json-file", metavar="FILE", help="save who has the partitions now")
    parser.add_argument("--dry-run", action="store_true", help="show what would move, and its bytes")
    parser.add_argument("--no-wait", action="store_true", help="begin, and leave throttles to kavka reassign verify")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.reassign.executing import Limits, before, execute
    from kavka.cli.reassign.json_files import read_reassignment
    from kavka.cli.reassign.making import write_reassignment
    from kavka.cli.reassign.plan_text import plan_report

    wanted = read_reassignment(args.reassignment_json_file)
    limits = Limits(args.throttle, args.replica_alter_log_dirs_throttle)
    with open_admin(args) as admin:
        there = before(admin, wanted, is_additional=args.additional or args.dry_run)
        if args.rollback_json_file is not None and not args.dry_run:
            write_reassignment(args.rollback_json_file, there.current)
        show(args, plan_report(wanted.replicas, there.current, there.bytes_to_move))
        if args.dry_run:
            return 0
        return execute(admin, wanted, there, limits, args)
