"""`kavka storage add-user --user NAME [server.properties]`.

A user's password, where the brokers that are still to be started find it: a cluster whose listeners all ask for one
could not be told of the first user otherwise. `kavka users` is for clusters that run.
"""

import argparse

from kavka.cli.users.arguments import add_credential_arguments

HELP = "give a user a password before any broker runs"
EXAMPLE = "kavka storage add-user --user admin --password-file secret.txt server.properties"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config_file", nargs="?", metavar="server.properties", help="the broker's settings")
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help="a broker's setting")
    add_credential_arguments(parser)


def run(args: argparse.Namespace) -> int:
    import os

    from kavka.cli.adopting import REFUSED
    from kavka.cli.failing import Failure
    from kavka.cli.output import complain, emit
    from kavka.cli.parsing import WRONG_USAGE
    from kavka.cli.secrets import read_secret
    from kavka.cli.users.arguments import mechanisms_of
    from kavka.cli.users.without_broker import write_user
    from kavka.config.sources import load_config

    if not args.user:
        raise Failure("--user must not be empty", exit_code=WRONG_USAGE)
    mechanisms = mechanisms_of(args)
    password = read_secret(args.password_file, "password", "--password-file")
    try:
        config = load_config(args.config_file, args.override, os.environ).config
        write_user(config, args.user, mechanisms, password, args.iterations)
    except REFUSED as error:
        return complain("kavka storage add-user", error)
    emit(f"user {args.user}: {', '.join(mechanisms)}")
    return 0
