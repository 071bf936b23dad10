"""Watches which of two ways a request takes: the prepared one, or the ordinary one."""

from typing import Any, TypeVar

import pytest

from kavka.broker.metrics.registry import ThreadCells
from kavka.broker.requests.prepared_commit import PreparedCommits
from kavka.broker.requests.prepared_member import RepeatedHeartbeats, RepeatedWaits
from kavka.broker.requests.prepared_produce import PreparedProduces

_Prepared = TypeVar("_Prepared", PreparedProduces, PreparedCommits, RepeatedHeartbeats, RepeatedWaits)


def watch_short_ways(monkeypatch: pytest.MonkeyPatch, prepared: type[_Prepared]) -> list[bool]:
    """Of each request that looks for its shape from now on, whether it takes the short way; grows as they come."""
    taken: list[bool] = []
    run = prepared.run

    def watched(self: _Prepared, frame: memoryview, cells: ThreadCells, may_wait: bool) -> Any:
        answer = run(self, frame, cells, may_wait)
        taken.append(answer is not None)
        return answer

    monkeypatch.setattr(prepared, "run", watched)
    return taken
