"""`kavka reassign verify`: how far a reassignment is; removes its throttles once it is done."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.reassign.arguments import add_file_argument
from kavka.cli.showing import add_output_arguments, show

HELP = "check how far a reassignment is, and remove throttles once it is done"
EXAMPLE = "kavka reassign verify --reassignment-json-file plan.json --wait"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_file_argument(parser)
    parser.add_argument("--wait", action="store_true", help="wait until it is done, and show how far it is meanwhile")
    parser.add_argument("--preserve-throttles", action="store_true", help="leave throttles as they are")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.reassign.executing import finish
    from kavka.cli.reassign.following import follow, note
    from kavka.cli.reassign.json_files import read_reassignment
    from kavka.cli.reassign.plan_text import state_table
    from kavka.cli.reassign.states import checked

    wanted = read_reassignment(args.reassignment_json_file)
    with open_admin(args) as admin:
        if args.wait:
            follow(admin, wanted)
        found = checked(admin, wanted)
        show(args, state_table(found.rows))
        if not found.is_ongoing and not args.preserve_throttles:
            note(finish(admin, wanted))
    return 0 if found.is_done else 1
