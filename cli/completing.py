"""What may come next on a command line: commands, flags, their choices, and topics while a broker answers soon."""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from kavka.cli.failing import expected_errors
from kavka.cli.parsing import Parser
from kavka.cli.tree import commands, verb_of

_PATIENCE_MS: Final = 700
_TOPIC_FLAGS: Final = frozenset({"--topic"})
_TOPIC_PLACES: Final = frozenset({"topics", "topic"})


def candidates(words: Sequence[str]) -> list[str]:
    """For the last of the words, which may be empty or half typed."""
    *before, begun = words
    tree = commands()
    for command in tree:
        if tuple(before[: len(command.words)]) == command.words:
            parser = Parser("kavka", "")
            verb_of(command).add_arguments(parser)
            found = _of_verb(parser, before[len(command.words) :], begun)
            break
    else:
        depth = len(before)
        found = {each.words[depth] for each in tree if len(each.words) > depth and list(each.words[:depth]) == before}
        if not before:
            found |= {"--help", "--version"}
    return sorted(each for each in found if each.startswith(begun))


def _of_verb(parser: Parser, before: Sequence[str], begun: str) -> set[str]:
    actions = {flag: action for action in parser._actions for flag in action.option_strings}
    last = actions.get(before[-1]) if before else None
    if last is not None and last.nargs != 0:
        if last.choices is not None:
            return {str(choice) for choice in last.choices}
        return _topics(before, actions) if _TOPIC_FLAGS & set(last.option_strings) else set()
    if begun.startswith("-"):
        return set(actions)
    places = [action for action in parser._actions if not action.option_strings]
    found = {str(choice) for action in places for choice in action.choices or ()}
    if any(action.dest in _TOPIC_PLACES for action in places):
        found |= _topics(before, actions)
    return found or set(actions)


def _topics(before: Sequence[str], actions: dict[str, argparse.Action]) -> set[str]:
    """The topics there are; none where no broker answers soon."""
    from kavka.cli.connecting import add_connection_arguments, open_admin

    parser = Parser("kavka", "")
    add_connection_arguments(parser, broker_list_means_ids="--broker-list" not in actions)
    given = [word for pair in pairwise(before) if pair[0] in _CONNECTION for word in pair]
    try:
        args = parser.parse_args([*given, "--timeout-ms", str(_PATIENCE_MS)])
        with open_admin(args) as admin:
            return set(admin.list_topics())
    except SystemExit:
        return set()
    except expected_errors():
        return set()


_CONNECTION: Final = frozenset({"--bootstrap-server", "--broker-list", "--command-config", "--profile"})
