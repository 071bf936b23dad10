"""Subscriptions by regular expression: checked when they come, resolved in slices, off the heartbeat's path.

The expressions are clients': `kavka.coordinator.regular_expressions` has the bounds.
"""

import logging
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from kavka.coordinator.group.consumer.viewers import ViewersOf
from kavka.coordinator.regular_expressions import InvalidExpressionError, compile_expression
from kavka.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from kavka.coordinator.group.consumer.state import LoggedState
    from kavka.coordinator.group.group import Viewer

MATCHES_PER_SLICE: Final = 128
"""About half a millisecond."""
PATTERNS_AT_ONCE: Final = 8
"""Compiled and matched together: each of a large group's members may bring one of its own, which takes a fraction of
a millisecond and up to a quarter of a MiB."""
NEW_REGEX_INTERVAL_MS: Final = 1_000
"""Between two looks at the topics, where a member has brought an expression that nobody has resolved yet."""
REFRESH_INTERVAL_MS: Final = 10_000
"""Between two looks at the topics, where topics have come or gone."""
FORCED_REFRESH_INTERVAL_MS: Final = 600_000
"""When the topics are looked at in any case."""

log = logging.getLogger(__name__)


def check_regex(regex: str) -> None:
    """Raise BrokerError (INVALID_REGULAR_EXPRESSION) unless that is an expression of RE2 within the bounds."""
    _compile(regex)


class Resolution:
    """A look at all topics for a group's regular expressions, done in slices. Internal topics match as others do.

    One matches what all who are subscribed to it may describe, as far as that is known: `viewers`.
    An expression that a log brings, but that today's bounds refuse, stands in `refused`, and is no error.
    Made and stepped under the shard's lock; the names are those of the moment at which it was made, `started_ms` is
    the time of day.
    """

    __slots__ = ("_left", "_names", "_patterns", "_waiting", "found", "refused", "started_ms", "version", "viewers")

    def __init__(
        self,
        regexes: Iterable[str],
        names: Iterable[str],
        version: int,
        started_ms: int,
        viewers: ViewersOf = MappingProxyType({}),
    ) -> None:
        self.viewers = viewers
        self.version = version
        self.started_ms = started_ms
        self.found: dict[str, set[str]] = {}
        self.refused: set[str] = set()
        self._names = list(names)
        self._waiting = iter(list(regexes))
        self._patterns: list[tuple[set[str], Any, Collection[Viewer]]] = []
        self._left: Iterator[str] = iter(())

    def step(self) -> bool:
        """Compile some more expressions, or match those with some more topics; True when all has been looked at."""
        if not self._patterns:
            return not self._compile_some()
        names = list(islice(self._left, MATCHES_PER_SLICE // PATTERNS_AT_ONCE))
        if not names:
            self._patterns = []
        for name in names:
            encoded = name.encode()
            for found, pattern, viewers in self._patterns:
                if pattern.fullmatch(encoded) is not None and all([each.may_describe(name) for each in viewers]):
                    found.add(name)
        return False

    def _compile_some(self) -> bool:
        """Whether there were any left."""
        regexes = list(islice(self._waiting, PATTERNS_AT_ONCE))
        for regex in regexes:
            try:
                pattern = _compile(regex)
            except BrokerError as error:
                log.warning("a stored subscription is left as it is: %s", error)
                self.refused.add(regex)
                continue
            viewers = self.viewers.get(regex, {}).values()
            self._patterns.append((self.found.setdefault(regex, set()), pattern, viewers))
        self._left = iter(self._names)
        return bool(regexes)


def is_due(
    logged: "LoggedState", looked_at_ms: int | None, monotonic_ms: int, version: int, *, may_match_more: bool = False
) -> bool:
    """Whether a group's expressions should be resolved (again) now.

    `looked_at_ms`: when they were, None for never. `may_match_more`: whether less is hidden than was then.
    """
    if not logged.regexes:
        return False
    if looked_at_ms is None:
        return True
    since_ms = monotonic_ms - looked_at_ms
    if since_ms < NEW_REGEX_INTERVAL_MS:
        return False
    if may_match_more or any(regex not in logged.resolved for regex in logged.regexes):
        return True
    if since_ms < REFRESH_INTERVAL_MS:
        return False
    resolved = logged.resolved.values()
    return since_ms >= FORCED_REFRESH_INTERVAL_MS or any(each.version != version for each in resolved)


def _compile(regex: str) -> Any:
    try:
        return compile_expression(regex)
    except InvalidExpressionError as error:
        raise _invalid(regex, str(error)) from None


def _invalid(regex: str, reason: str) -> BrokerError:
    shown = regex if len(regex) <= 200 else f"{regex[:200]}..."
    return BrokerError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{shown}` is not a valid regular expression: {reason}.",
    )
