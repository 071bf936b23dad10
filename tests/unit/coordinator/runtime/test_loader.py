"""The thread that loads shards: where it could not be started once, it is with the next shard."""

import threading
from typing import Any

import pytest

from kavka.coordinator.runtime.loader import Loader
from kavka.coordinator.runtime.shard_runner import ShardRunner
from tests.support.processes import wait_until

WAIT_S = 60


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def _to_load() -> Any:
    runner = ShardRunner.__new__(ShardRunner)
    runner.gone = False
    return runner


def test_a_shard_whose_thread_could_not_be_started_is_loaded_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    died: list[BaseException] = []
    loader = Loader[Any]("example", loaded.append, died.append)
    first, second = _to_load(), _to_load()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            loader.load(first)
    loader.load(second)
    wait_until(lambda: loaded == [first, second], WAIT_S, lambda: str(loaded))
    loader.stop()
    assert died == []


def test_a_loader_whose_thread_could_not_be_started_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    loader = Loader[Any]("example", print, print)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            loader.load(_to_load())
    loader.stop()
