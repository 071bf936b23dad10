"""How commands fail: one line on standard error for each thing that went wrong, and an exit code for scripts.

Verbs let the client's errors rise, or raise `Failure`; `kavka.cli.main` shows them as `reported` says.
"""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kavka.cli.output import FAILED, complain
from kavka.cli.parsing import WRONG_USAGE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kavka.client.admin.item_errors import ItemErrors

Result = TypeVar("Result")

UNREACHABLE: Final = 3
UNAUTHORISED: Final = 4

_CLIENT_ERRORS: Final = "kavka.client.kafka_error"
_ITEM_ERRORS: Final = "kavka.client.admin.item_errors"
_CONFIG_ERRORS: Final = "kavka.config.errors"
UNREACHABLE_HINT: Final = "is a broker listening there? name one with --bootstrap-server"
UNANSWERED_HINT: Final = (
    "is a broker listening there, and by this security.protocol? name one with --bootstrap-server, or the other "
    "settings in --command-config"
)
_HINTS: Final = {
    "AuthorizationError": "the principal may not do this: an ACL has to allow it (kavka acls)",
    "AuthenticationError": "check the credentials in --command-config",
}


class Failure(Exception):  # noqa: N818  # the end of a command, which need be nobody's error
    """A command cannot do what it was asked for: `message` says what, `hint` what to do about it."""

    def __init__(self, message: str, hint: str = "", exit_code: int = FAILED) -> None:
        self.exit_code = exit_code
        super().__init__(f"{message}; {hint}" if hint else message)


class Failures(Failure):
    """Several things that went wrong, by what they went wrong with."""

    def __init__(self, errors: Mapping[str, BaseException]) -> None:
        self.errors = dict(errors)
        super().__init__("; ".join(f"{name}: {error}" for name, error in errors.items()))


def expected_errors() -> tuple[type[BaseException], ...]:
    """What commands may fail by: all else is a mistake in this program. Imports nothing: what was raised is loaded."""
    named = (_CLIENT_ERRORS, "KafkaError"), (_CONFIG_ERRORS, "ConfigError")
    loaded = [getattr(sys.modules[module], name) for module, name in named if module in sys.modules]
    return Failure, OSError, *loaded


def reported(command: str, error: BaseException) -> int:
    """Say what went wrong, in a line for each item that failed; gives the exit code."""
    items = _item_errors(error)
    if items is None:
        complain(command, _with_hint(error))
        return exit_code_of(error)
    lines = {item: str(_with_hint(failure)) for item, failure in items.items()}
    if all(exit_code_of(failure) == UNREACHABLE for failure in items.values()):
        # The same is wrong with all of them.
        complain(command, next(iter(lines.values())))
        return UNREACHABLE
    for item, text in lines.items():
        complain(command, f"{_item_text(item)}: {text}")
    codes = {exit_code_of(failure) for failure in items.values()}
    return codes.pop() if len(codes) == 1 else FAILED


def tried(
    call: Callable[[], dict[Any, Result]],
) -> "tuple[dict[Any, Result], ItemErrors | None]":
    """What came of a call on many items, and the error to be raised once that has been shown.

        done, failure = tried(lambda: admin.delete_topics(names))
        ...
        if failure is not None:
            raise failure

    A call on one item raises that item's own error, which becomes one of several all the same.
    """
    from kavka.client.admin.item_errors import ItemErrors
    from kavka.client.kafka_error import KafkaError

    try:
        return call(), None
    except ItemErrors as failure:
        return dict(failure.results), failure
    except KafkaError as error:
        if error.item is None:
            raise
        return {}, ItemErrors("", {error.item: error}, {})


def excused(failure: "ItemErrors | None", kind: str) -> "tuple[list[Any], ItemErrors | None]":
    """The items that failed by errors of the class with this name, and the failure without them."""
    from kavka.client.admin.item_errors import ItemErrors

    if failure is None:
        return [], None
    left = {item: error for item, error in failure.errors.items() if type(error).__name__ != kind}
    gone = [item for item in failure.errors if item not in left]
    return gone, ItemErrors("", left, failure.results) if left else None


def exit_code_of(error: BaseException) -> int:
    """1 failed, 2 wrong usage, 3 no broker was reached or none answered in time, 4 not authorised."""
    if isinstance(error, Failure):
        return error.exit_code
    kinds = _kinds(error)
    if "ConfigError" in kinds:
        return WRONG_USAGE
    if "AuthorizationError" in kinds or "AuthenticationError" in kinds:
        return UNAUTHORISED
    return UNREACHABLE if kinds & {"KafkaTimeoutError", "DisconnectedError"} else FAILED


def _with_hint(error: BaseException) -> BaseException | str:
    if "KafkaError" not in _kinds(error):
        return error
    hint = next((text for name, text in _HINTS.items() if name in _kinds(error)), "")
    if not hint and exit_code_of(error) == UNREACHABLE:
        hint = UNANSWERED_HINT
    return f"{str(error).rstrip('.')}; {hint}" if hint else str(error)


def _kinds(error: BaseException) -> set[str]:
    """The names of the error's classes, by which nothing need be imported."""
    return {base.__name__ for base in type(error).__mro__}


def _item_errors(error: BaseException) -> "dict[Any, BaseException] | None":
    """By item, of one too. None: the error is about none."""
    if isinstance(error, Failures):
        return dict(error.errors)
    module = sys.modules.get(_ITEM_ERRORS)
    if module is not None and isinstance(error, module.ItemErrors):
        return dict(error.errors)
    item = getattr(error, "item", None)
    return None if item is None else {item: error}


def _item_text(item: Any) -> str:
    """As users name it: `orders-0`, `topic orders`, `user alice`, `TOPIC orders User:alice READ ALLOW * LITERAL`."""
    fields: Iterable[str] = getattr(item, "_fields", ())
    if "partition" in fields:
        return f"{item.topic}-{item.partition}"
    if "type" in fields and "name" in fields:
        return f"{item.type.name.lower().replace('_', '-')} {item.name or '<default>'}"
    if fields == ("names",):
        return " ".join(f"{kind} {name or '<default>'}" for kind, name in sorted(item.names))
    if fields:
        return " ".join(str(getattr(each, "name", each)) for each in item if each is not None)
    return "-".join(str(each) for each in item) if isinstance(item, tuple) else str(item)
