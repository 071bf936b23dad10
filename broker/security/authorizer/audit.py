"""The audit log of decisions, in Kafka's words: who was refused what, and at DEBUG who was allowed what.

    Principal = User:eve is Denied Operation = Read from host = 10.0.0.7 on resource = Topic:LITERAL:salaries for
    request = Fetch with resourceRefCount = 1

What repeats itself is logged once and counted; the count follows as the line's `resourceRefCount`, when PERIOD_S has
gone by and there is something to log, or when the broker stops.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from kavka.broker.metrics.log_lines import AUDIT, escaped
from kavka.broker.security.acl import Operation, Resource, ResourceType
from kavka.broker.security.authorizer.names import OPERATION_NAMES, TYPE_NAMES
from kavka.protocol.api import ApiKey

PERIOD_S: Final = 60.0
MOST_COUNTED: Final = 1_000
"""Refusals that are watched for repetition; one more, and the one that is watched longest is told and forgotten."""

log = logging.getLogger(AUDIT)


class Asked(NamedTuple):
    """Who asked for what. `resource`: as `named` or `any_of` write it."""

    principal: str
    host: str
    operation: Operation
    resource: str
    api_key: int


class _Repeats:
    __slots__ = ("began_s", "count")

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.count = 0


class Audit:
    """Threads: any; `_lock` guards `_repeats`, the oldest first. Nothing is logged under it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._repeats: dict[Asked, _Repeats] = {}

    @property
    def is_detailed(self) -> bool:
        """Whether what is allowed is logged, too."""
        return log.isEnabledFor(logging.DEBUG)

    def allowed(self, asked: Asked) -> None:
        """Log it at DEBUG."""
        log.debug("%s", _line(asked, 1, "Allowed"))

    def refused(self, asked: Asked) -> None:
        """Log it at INFO, or count it where it repeats itself."""
        if not log.isEnabledFor(logging.INFO):
            return
        now_s = self._now_s()
        with self._lock:
            told = self._take(lambda each: now_s - each.began_s >= PERIOD_S)
            known = self._repeats.get(asked)
            if known is not None:
                known.count += 1
            else:
                while len(self._repeats) >= MOST_COUNTED:
                    told += self._take_first()
                self._repeats[asked] = _Repeats(now_s)
        for each, count in told:
            log.info("%s", _line(each, count, "Denied"))
        if known is None:
            log.info("%s", _line(asked, 1, "Denied"))

    def close(self) -> None:
        """Log what was counted."""
        with self._lock:
            told = self._take(lambda _: True)
        for each, count in told:
            log.info("%s", _line(each, count, "Denied"))

    def _take(self, is_over: Callable[[_Repeats], bool]) -> list[tuple[Asked, int]]:
        """Forget the oldest that are over, and give those that were repeated."""
        told: list[tuple[Asked, int]] = []
        while self._repeats and is_over(next(iter(self._repeats.values()))):
            told += self._take_first()
        return told

    def _take_first(self) -> list[tuple[Asked, int]]:
        asked = next(iter(self._repeats))
        count = self._repeats.pop(asked).count
        return [(asked, count)] if count else []


def named(resource: Resource) -> str:
    """One resource, as Kafka writes it."""
    return f"{TYPE_NAMES[resource.type]}:LITERAL:{resource.name}"


def any_of(resource_type: ResourceType) -> str:
    """Any resource of a type, as Kafka writes it (KIP-679)."""
    return f"{TYPE_NAMES[resource_type]}:UNKNOWN:NONE"


def _line(asked: Asked, count: int, outcome: str) -> str:
    return escaped(
        f"Principal = {asked.principal} is {outcome} Operation = {OPERATION_NAMES[asked.operation]} "
        f"from host = {asked.host} on resource = {asked.resource} "
        f"for request = {ApiKey(asked.api_key).title} with resourceRefCount = {count}"
    )
