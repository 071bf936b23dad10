"""`kavka tokens describe`: the tokens that one may see."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.showing import add_output_arguments, show
from kavka.cli.tokens.arguments import principal

HELP = "show delegation tokens, with their HMACs"
EXAMPLE = "kavka tokens describe --owner-principal User:alice --command-config client.properties"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--owner-principal", action="append", type=principal, metavar="TYPE:NAME", help="only tokens of this owner"
    )
    add_connection_arguments(parser)
    add_output_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.tokens.token_report import token_report
    from kavka.client.admin import KafkaPrincipal

    owners = None if args.owner_principal is None else [KafkaPrincipal.parse(each) for each in args.owner_principal]
    with open_admin(args) as admin:
        found = admin.describe_delegation_tokens(owners)
    show(args, token_report(found))
    return 0
