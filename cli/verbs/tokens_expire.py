"""`kavka tokens expire`: when a token expires."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.output import emit
from kavka.cli.tokens.arguments import add_hmac_arguments, period

HELP = "have a token expire, at once by default"
EXAMPLE = "kavka tokens expire --hmac-file token.txt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_hmac_arguments(parser)
    parser.add_argument(
        "--expiry-time-period",
        type=period,
        default=-1,
        metavar="MS",
        help="in how long; -1, the default: at once",
    )
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.tokens.arguments import hmac_of
    from kavka.cli.tokens.token_report import time_text

    hmac = hmac_of(args)
    with open_admin(args) as admin:
        expiry_ms = admin.expire_delegation_token(hmac, expiry_time_period_ms=args.expiry_time_period)
    emit(f"expires {time_text(expiry_ms)}" if expiry_ms >= 0 else "it is gone already")
    return 0
