"""`kavka groups describe`: a group's offsets and lag, members, state, or what happened to it lately."""

import argparse
from collections.abc import Sequence

from kavka.cli.connecting import add_connection_arguments, client_settings, open_admin
from kavka.cli.groups.choosing import add_group_arguments
from kavka.cli.showing import add_output_arguments, show

HELP = "show groups' offsets and lag in records and seconds, members, states, histories"
EXAMPLE = "kavka groups describe --group billing\nkavka groups describe --all-groups --state"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser)
    view = parser.add_mutually_exclusive_group()
    view.add_argument("--offsets", action="store_true", help="offsets and lag of each partition (the default)")
    view.add_argument("--members", action="store_true", help="the members and what they are assigned")
    view.add_argument("--state", action="store_true", help="state, coordinator, when it last rebalanced and why")
    view.add_argument("--history", action="store_true", help="what happened lately, and why (of Kavka's brokers)")
    parser.add_argument("--verbose", action="store_true", help="more columns: epochs, assignments, metadata")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import time

    from kavka.cli.groups import views
    from kavka.cli.groups.choosing import chosen_groups, raise_failures
    from kavka.cli.groups.described import described_groups
    from kavka.cli.groups.progress import progress_of
    from kavka.cli.groups.unread import UnreadTimestamps

    with open_admin(args) as admin, UnreadTimestamps(client_settings(args), args.timeout_ms) as unread:
        found, failures = described_groups(admin, chosen_groups(args, admin))
        groups, verbose, now_ms = found.values(), args.verbose, time.time_ns() // 1_000_000
        above = [views.headline(group, now_ms) for group in groups]
        columns: Sequence[str]
        if args.members:
            columns = views.MEMBERS_VERBOSE if verbose else views.MEMBERS
            shown = views.report("groups-members", views.member_rows(groups), columns, above)
        elif args.state:
            columns = views.STATE_VERBOSE if verbose else views.STATE
            shown = views.report("groups-state", views.state_rows(groups), columns)
        elif args.history:
            shown = views.report("groups-history", views.history_rows(groups), views.HISTORY, above)
        else:
            progress, failed = progress_of(admin, groups, unread.look)
            failures.update(failed)
            rows = views.offset_rows(groups, progress, time.time_ns() // 1_000_000)
            columns = views.OFFSETS_VERBOSE if verbose else views.OFFSETS
            shown = views.report("groups-offsets", rows, columns, above)
    show(args, shown)
    raise_failures("describing groups", failures, found)
    return 0
