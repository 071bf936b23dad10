"""Flags of `kavka tokens`. Loads nothing of the client."""

import argparse
import base64
import binascii

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE
from kavka.cli.secrets import read_secret


def add_hmac_arguments(parser: argparse.ArgumentParser) -> None:
    """Which token."""
    parser.add_argument("--hmac", metavar="BASE64", help="the token's, as kavka tokens create showed it")
    parser.add_argument(
        "--hmac-file", metavar="FILE", help="it is the file's first line; -: standard input; else it is asked for"
    )


def hmac_of(args: argparse.Namespace) -> bytes:
    """Raises Failure for what is no base64, OSError."""
    if args.hmac is not None and args.hmac_file is not None:
        raise Failure("--hmac and --hmac-file do not go together", exit_code=WRONG_USAGE)
    text = args.hmac if args.hmac is not None else read_secret(args.hmac_file, "HMAC", "--hmac-file")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Failure("the HMAC is no base64", exit_code=WRONG_USAGE) from None


def period(text: str) -> int:
    """Milliseconds, or -1 for what the broker has as its default. Raises argparse.ArgumentTypeError."""
    if text != "-1" and not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of milliseconds, nor -1")
    return int(text)


def principal(text: str) -> str:
    """`User:alice`. Raises argparse.ArgumentTypeError."""
    kind, colon, _ = text.partition(":")
    if not colon or not kind:
        raise argparse.ArgumentTypeError(f"{text!r}: a principal is written Type:name, such as User:alice")
    return text
