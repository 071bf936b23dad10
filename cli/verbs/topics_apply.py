"""`kavka topics apply FILE.toml`: topics as a file declares them; shows a plan, and with --execute does it."""

import argparse
from pathlib import Path

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.output import emit
from kavka.cli.showing import Table, add_output_arguments, show

HELP = "bring topics and their settings to what a file declares: shows the plan, does it with --execute"
EXAMPLE = """\
kavka topics apply topics.toml --execute
with topics.toml:
  [topics.orders]
  partitions = 6
  replication-factor = 3
  configs = {"cleanup.policy" = "compact", "retention.ms" = 86400000}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.toml", help="the declared topics")
    parser.add_argument("--execute", "--yes", action="store_true", help="do what the plan says")
    parser.add_argument(
        "--delete-undeclared-configs", action="store_true", help="declared topics lose settings that are not declared"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.topics.applying import PLANNED, execute, plan
    from kavka.cli.topics.declaring import declared_topics
    from kavka.cli.topics.planning import COLUMNS, step_row

    declared = declared_topics(args.file)
    with open_admin(args) as admin:
        steps = plan(admin, declared, delete_undeclared=args.delete_undeclared_configs)
        states, failure = execute(admin, steps) if args.execute else ([PLANNED] * len(steps), None)
    show(args, Table("topics-apply", COLUMNS, list(map(step_row, steps, states))))
    if args.output == "text" and not (steps and args.execute):
        emit("nothing was done: --execute does it" if steps else "nothing is to be done")
    if failure is not None:
        raise failure
    return 0
