"""`kavka quorum describe --status | --replication`: KRaft's quorum, as kafka-metadata-quorum."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "show KRaft's quorum: who leads, votes and follows"
EXAMPLE = "kavka quorum describe --status\nkavka quorum describe --replication --human-readable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--status", action="store_true", help="a summary")
    what.add_argument("--replication", action="store_true", help="how far each voter and observer is")
    parser.add_argument("--human-readable", action="store_true", help="times as dates, and how long ago they were")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import time

    from kavka.cli.cluster.quorum import replication, status

    with open_admin(args) as admin:
        quorum = admin.describe_metadata_quorum()
        cluster_id = admin.describe_cluster().cluster_id if args.status else None
    now_ms = int(time.time() * 1000)
    shown = status(quorum, cluster_id) if args.status else replication(quorum, now_ms, is_readable=args.human_readable)
    show(args, shown)
    return 0
