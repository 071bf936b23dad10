"""`kavka tokens create`: a token by which others can be known as its owner."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show
from kavka.cli.tokens.arguments import period, principal

HELP = "create a delegation token, for oneself or another owner"
EXAMPLE = """kavka tokens create --renewer-principal User:carol --command-config client.properties
kavka tokens create --owner-principal User:alice --max-life-time-period 3600000"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-life-time-period", type=period, default=-1, metavar="MS", help="-1, the default: the broker's"
    )
    parser.add_argument(
        "--renewer-principal",
        action="append",
        type=principal,
        default=[],
        metavar="TYPE:NAME",
        help="may renew it",
    )
    parser.add_argument("--owner-principal", type=principal, metavar="TYPE:NAME", help="whose it is (default: yours)")
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.tokens.token_report import token_report
    from kavka.client.admin import KafkaPrincipal

    owner = None if args.owner_principal is None else KafkaPrincipal.parse(args.owner_principal)
    renewers = [KafkaPrincipal.parse(each) for each in args.renewer_principal]
    with open_admin(args) as admin:
        token = admin.create_delegation_token(renewers=renewers, owner=owner, max_lifetime_ms=args.max_life_time_period)
    show(args, token_report([token]))
    return 0
