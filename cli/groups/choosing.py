"""Which groups a command is about, and which of them there are."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from kavka.cli.failing import Failure
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin.types.groups import GroupListing
    from kavka.client.kafka_error import KafkaError

Item = TypeVar("Item")
Result = TypeVar("Result")
Name = TypeVar("Name", bound=StrEnum)


def add_group_arguments(parser: argparse.ArgumentParser) -> None:
    """`--group ID`, any number of times, or `--all-groups`."""
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--group", action="append", metavar="ID", help="this group; again for others")
    chosen.add_argument("--all-groups", action="store_true", help="all groups that there are")


def add_group_argument(parser: argparse.ArgumentParser) -> None:
    """`--group ID`, once."""
    parser.add_argument("--group", required=True, metavar="ID", help="the group")


def listed_groups(admin: "Admin", **filters: Any) -> "tuple[list[GroupListing], KafkaError | None]":
    """All groups in the order of their ids, and why brokers did not tell theirs. Filters are `Admin.list_groups`'s."""
    from kavka.client.admin.item_errors import ItemErrors

    failure: KafkaError | None = None
    try:
        found = admin.list_groups(**filters)
    except ItemErrors as error:
        found, failure = [group for listed in error.results.values() for group in listed], error
    return sorted(found, key=lambda group: group.group_id), failure


def chosen_groups(args: argparse.Namespace, admin: "Admin") -> list[str]:
    """The ids of the groups that the command line names, or of all. Raises Failure, KafkaError."""
    if not args.all_groups:
        return list(dict.fromkeys(args.group))
    found, failure = listed_groups(admin)
    if failure is not None:
        raise failure
    return [group.group_id for group in found]


def outcomes(
    items: Iterable[Item], call: Callable[[list[Item]], Mapping[Any, Result]]
) -> "tuple[dict[Any, Result], dict[Any, KafkaError]]":
    """What came of a call on many items, and what failed of them: also of one, whose own error such calls raise.

    What reached no broker at all rises as it is.
    """
    from kavka.client.admin.item_errors import ItemErrors
    from kavka.client.kafka_error import KafkaError

    asked = list(items)
    if not asked:
        return {}, {}
    try:
        return dict(call(asked)), {}
    except ItemErrors as error:
        return dict(error.results), dict(error.errors)
    except KafkaError as error:
        if len(asked) > 1 or not error.code:
            raise
        return {}, {asked[0]: error}


def raise_failures(what: str, failures: "Mapping[Any, KafkaError]", results: Mapping[Any, Any]) -> None:
    """After what was done has been shown. Raises ItemErrors if something was not."""
    from kavka.client.admin.item_errors import ItemErrors

    if failures:
        raise ItemErrors(what, failures, results)


def names_of(kind: type[Name], text: str | None, flag: str) -> list[Name]:
    """States or types from `stable,empty`; none for no text. Raises Failure for others than there are."""
    known = {each.value.lower(): each for each in kind if each.value != "Unknown"}
    wanted = [each.strip() for each in (text or "").split(",") if each.strip()]
    for each in wanted:
        if each.lower() not in known:
            valid = ", ".join(each.value for each in known.values())
            raise Failure(f"{flag}: there is no {each!r}", f"there are {valid}", WRONG_USAGE)
    return [known[each.lower()] for each in wanted]
