"""Users' SCRAM credentials: which there are, and new passwords for them."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kavka.cli.failing import Failure
from kavka.cli.secrets import read_secret
from kavka.cli.showing import Table
from kavka.cli.users.arguments import mechanisms_of
from kavka.client.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kavka.client.api_errors import ResourceNotFoundError

if TYPE_CHECKING:
    from kavka.client.admin.admin import Admin


def add(admin: "Admin", args: argparse.Namespace) -> None:
    """Give a user a password. Raises Failure if there is one for a mechanism already."""
    wanted = _mechanisms(mechanisms_of(args))
    if known := [each for each in wanted if each in _known(admin, args.user)]:
        raise Failure(f"user {args.user} has a password for {text_of(known[0])}", "kavka users alter changes it")
    _set(admin, args, wanted)


def alter(admin: "Admin", args: argparse.Namespace) -> None:
    """Change a user's password: for the mechanisms that were given, or all that it has one for. Raises Failure."""
    known = _known(admin, args.user)
    wanted = _mechanisms(mechanisms_of(args)) if args.mechanism else known
    if not known:
        raise Failure(f"user {args.user} has no password", "kavka users add gives it one")
    if missing := [each for each in wanted if each not in known]:
        raise Failure(f"user {args.user} has no password for {text_of(missing[0])}", "kavka users add gives it one")
    _set(admin, args, wanted)


def _set(admin: "Admin", args: argparse.Namespace, wanted: Iterable[ScramMechanism]) -> None:
    password = read_secret(args.password_file, "password", "--password-file")
    for each in wanted:
        # KRaft's controller takes one change of a user in a request.
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(args.user, each, password, args.iterations)])


def delete(admin: "Admin", args: argparse.Namespace) -> None:
    """Take a user's passwords for these mechanisms away."""
    for each in _mechanisms(dict.fromkeys(args.mechanism)):
        admin.alter_user_scram_credentials(deletions=[UserScramCredentialDeletion(args.user, each)])


def user_table(found: Mapping[str, Sequence[ScramCredentialInfo]]) -> Table:
    """Who has a password for what."""
    rows = [
        (user, text_of(each.mechanism), each.iterations)
        for user, infos in sorted(found.items())
        for each in sorted(infos)
    ]
    return Table("users-list", ("user", "mechanism", "iterations"), rows)


def text_of(mechanism: ScramMechanism) -> str:
    """As SASL has it: `SCRAM-SHA-256`."""
    return mechanism.name.replace("_", "-")


def _mechanisms(texts: Iterable[str]) -> list[ScramMechanism]:
    return [ScramMechanism[text.replace("-", "_")] for text in texts]


def _known(admin: "Admin", user: str) -> list[ScramMechanism]:
    try:
        found = admin.describe_user_scram_credentials([user])
    except ResourceNotFoundError:
        return []
    return [each.mechanism for each in found[user]]
