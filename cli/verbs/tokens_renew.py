"""`kavka tokens renew`: when a token expires."""

import argparse

from kavka.cli.connecting import add_connection_arguments, open_admin
from kavka.cli.output import emit
from kavka.cli.tokens.arguments import add_hmac_arguments, period

HELP = "have a token expire later"
EXAMPLE = "kavka tokens renew --hmac-file token.txt --renew-time-period 86400000"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_hmac_arguments(parser)
    parser.add_argument(
        "--renew-time-period",
        type=period,
        default=-1,
        metavar="MS",
        help="for how long from now on; default: the broker's",
    )
    add_connection_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from kavka.cli.tokens.arguments import hmac_of
    from kavka.cli.tokens.token_report import time_text

    hmac = hmac_of(args)
    with open_admin(args) as admin:
        expiry_ms = admin.renew_delegation_token(hmac, renew_time_period_ms=args.renew_time_period)
    emit(f"expires {time_text(expiry_ms)}" if expiry_ms >= 0 else "it is gone already")
    return 0
