"""`kavka reassign cancel`: gives a reassignment up; with a rollback file what was moved already goes back, too."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.reassign.arguments import add_file_argument, add_timeout_argument
from kavka.cli.showing import add_output_arguments, show

HELP = "give up moves that go on, and move back those that are done"
EXAMPLE = """kavka reassign cancel --reassignment-json-file plan.json
kavka reassign cancel --reassignment-json-file plan.json --rollback-json-file before.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file_argument(parser)
    add_timeout_argument(parser)
    parser.add_argument(
        "--rollback-json-file", metavar="FILE", help="also move back what is done, to where it was before execute"
    )
    parser.add_argument("--preserve-throttles", action="store_true", help="leave throttles as they are")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.reassign.cancelling import cancel
    from kavka.cli.reassign.json_files import read_reassignment
    from kavka.cli.reassign.plan_text import state_table

    wanted = read_reassignment(args.reassignment_json_file)
    back = read_reassignment(args.rollback_json_file) if args.rollback_json_file is not None else None
    with open_admin(args) as admin:
        show(args, state_table(cancel(admin, wanted, back, args)))
    return 0
