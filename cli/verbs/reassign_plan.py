"""`kavka reassign plan`: which replicas are to move so that brokers come, go or are balanced, and how many bytes."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.reassign.arguments import add_own_broker_list, broker_ids, number_from
from kavka.cli.showing import add_output_arguments, show

HELP = "plan moves that add, drain or balance brokers, with their bytes"
EXAMPLE = """kavka reassign plan --add-brokers 4,5 --out plan.json
kavka reassign plan --drain-brokers 3 --out plan.json
kavka reassign plan --balance --topic 'orders.*'
kavka reassign plan --replication-factor 3 --topic orders --out plan.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--add-brokers", type=broker_ids, metavar="ID[,...]", help="have these get their share")
    parser.add_argument("--drain-brokers", type=broker_ids, metavar="ID[,...]", help="have these lose all they have")
    parser.add_argument("--balance", action="store_true", help="have all get their share, on as many racks as can be")
    parser.add_argument("--replication-factor", type=number_from(1), metavar="N", help="have each partition N times")
    parser.add_argument("--topic", metavar="REGEX", help="only topics whose whole name matches (default: all)")
    parser.add_argument("--exclude-internal", action="store_true", help="leave internal topics out")
    parser.add_argument(
        "--topics-to-move-json-file", metavar="FILE", help="only these topics, as Kafka's tool has them"
    )
    parser.add_argument("--disable-rack-aware", action="store_true", help="leave racks aside")
    parser.add_argument("--out", metavar="FILE", help="save the plan for kavka reassign execute, or Kafka's tool")
    add_connection_arguments(parser)
    add_output_arguments(parser)
    add_own_broker_list(parser, required=False)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.reassign.making import plan, write_reassignment

    with open_admin(args) as admin:
        proposed, report = plan(admin, args)
    if args.out is not None and proposed:
        write_reassignment(args.out, proposed)
    show(args, report)
    return 0
