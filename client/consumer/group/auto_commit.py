"""Commits of what poll has returned, by the interval and before partitions go: `enable.auto.commit`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from kavka.client.consumer.group.commits import Commit
from kavka.client.consumer.group.group_settings import GroupSettings
from kavka.client.consumer.group.port import Assignments, Offsets
from kavka.client.kafka_error import RetriableError

log = logging.getLogger(__name__)


class AutoCommit:
    """When poll is called, what it returned before counts as done. Threads: the polling one's, but for `_ended`."""

    def __init__(
        self,
        settings: GroupSettings,
        assignments: Assignments,
        *,
        make: Callable[[Offsets, float | None], Commit],
        add: Callable[[Commit], None],
        now_ms: float,
    ) -> None:
        """`add` has a commit sent that `make` has made."""
        self.is_enabled: Final = settings.enable_auto_commit
        self._settings: Final = settings
        self._assignments: Final = assignments
        self._add: Final = add
        self._make: Final = make
        self._due_ms = now_ms + settings.auto_commit_interval_ms
        self._last: Future[None] | None = None

    @property
    def due_ms(self) -> float:
        """When `poll` has something to do, on the client's clock; never while the last commit is not answered."""
        is_waiting = not self.is_enabled or (self._last is not None and not self._last.done())
        return float("inf") if is_waiting else self._due_ms

    def poll(self, now_ms: float) -> None:
        """Commit if the interval is over, and the last one is answered; one that failed is made up for soon."""
        if not self.is_enabled or now_ms < self._due_ms:
            return
        last = self._last
        if last is not None:
            if not last.done():
                return
            self._last = None
            if isinstance(last.exception(), RetriableError):
                self._due_ms = now_ms + self._settings.retry_backoff_ms
                return
        self._due_ms = now_ms + self._settings.auto_commit_interval_ms
        offsets = self._assignments.consumed()
        if offsets:
            commit = self._make(offsets, None)
            commit.done.add_done_callback(_log)
            self._last = commit.done
            self._add(commit)

    def before_leaving(self, deadline_ms: float) -> Future[None] | None:
        """Commit all there is, trying again until then; None where there is nothing to commit."""
        offsets = self._assignments.consumed() if self.is_enabled else {}
        if not offsets:
            return None
        commit = self._make(offsets, deadline_ms)
        commit.done.add_done_callback(_log)
        self._add(commit)
        return commit.done

    def assigned(self, now_ms: float) -> None:
        """There is a new assignment: the interval begins."""
        self._due_ms = now_ms + self._settings.auto_commit_interval_ms


def _log(done: Future[None]) -> None:
    error = done.exception()
    if error is not None:
        log.warning("automatic commit failed error=%r", str(error))
