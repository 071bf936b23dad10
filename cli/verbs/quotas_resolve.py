"""`kavka quotas resolve`: the quotas that hold for somebody, whoever's they are."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show

HELP = "show which quotas hold for a user and client, or an address"
EXAMPLE = """kavka quotas resolve --user alice --client app
kavka quotas resolve --ip 10.0.0.1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="the user; without it one that has no quota of its own")
    parser.add_argument("--client", metavar="ID", help="the client id; without it one that has no quota of its own")
    parser.add_argument("--ip", metavar="ADDRESS", help="the address that connects")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.failing import Failure
    from kavka.cli.parsing import WRONG_USAGE
    from kavka.cli.quotas.quota_report import resolved_report
    from kavka.cli.quotas.resolving import resolved

    if (args.ip is None) == (args.user is None and args.client is None):
        raise Failure("either --ip, or --user and --client or one of them, is to be given", exit_code=WRONG_USAGE)
    names = {"ip": args.ip} if args.ip is not None else {"user": args.user, "client-id": args.client}
    with open_admin(args) as admin:
        quotas = admin.describe_client_quotas()
    show(args, resolved_report(resolved(quotas, names)))
    return 0
