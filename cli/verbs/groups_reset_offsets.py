"""`kavka groups reset-offsets`: where a group goes on; only shown, unless `--execute` is given."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.groups.choosing import add_group_arguments
from kavka.cli.groups.scenarios import add_scenario_arguments
from kavka.cli.showing import Report, Table, add_output_arguments, escaped, show

HELP = "set where groups without members go on (only shows it, unless --execute is given)"
EXAMPLE = (
    "kavka groups reset-offsets --group billing --topic orders:0,1 --to-earliest\n"
    "kavka groups reset-offsets --group billing --all-topics --by-duration PT1H --execute"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--topic", action="append", metavar="TOPIC[:0,1]", help="this topic; again for others")
    scope.add_argument("--all-topics", action="store_true", help="all that the group has committed")
    add_scenario_arguments(parser)
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--dry-run", action="store_true", help="only show what would be done (the default)")
    doing.add_argument("--execute", action="store_true", help="do it")
    parser.add_argument("--export", action="store_true", help="print the plan as CSV, for --from-file")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.groups import resetting
    from kavka.cli.groups.choosing import chosen_groups, raise_failures
    from kavka.cli.groups.offset_files import plan_lines
    from kavka.cli.output import complain
    from kavka.cli.parsing import WRONG_USAGE

    if args.from_file is None and not args.topic and not args.all_topics:
        raise Failure("no topics are named", "give --topic, --all-topics or --from-file", WRONG_USAGE)
    with open_admin(args) as admin:
        groups, failures = resetting.groups_to_reset(admin, chosen_groups(args, admin))
        reset = resetting.Resetting(admin, args)
        plans, refused = reset.plans(groups)
        if args.execute:
            plans, not_done = resetting.carried_out(reset, groups, plans)
            failures.update(not_done)
    rows = [
        (group_id, *each.partition, each.current, each.new) for group_id, resets in plans.items() for each in resets
    ]
    table = Table("groups-reset-offsets", ("group", "topic", "partition", "current_offset", "new_offset"), rows)
    if args.export and args.output == "text":
        csv = {group_id: {each.partition: each.new for each in resets} for group_id, resets in plans.items()}
        show(args, Report(table.name, (), lambda: map(escaped, plan_lines(csv))))
    else:
        show(args, table)
    for failure in refused.values():
        complain(resetting.COMMAND, failure)
    raise_failures("resetting offsets", failures, plans)
    if not args.execute and not args.dry_run and rows:
        complain(resetting.COMMAND, "nothing was changed; --execute does it")
    return 1 if refused else 0
