"""The thread for what waits for the registry: where it could not be started once, it is when it is needed again."""

import threading

import pytest

from kavka.broker.security.credentials.registry_worker import RegistryWorker

TIMEOUT_S = 60


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_thread_that_could_not_be_started_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, done = RegistryWorker(), list[str]()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            worker.run(lambda: done.append("refused"))
    try:
        worker.run(lambda: done.append("done")).result(TIMEOUT_S)
        assert done == ["done"], "who was told that it failed has it not done later"
    finally:
        worker.stop()


def test_a_worker_whose_thread_could_not_be_started_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = RegistryWorker()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            worker.run(lambda: None)
    worker.stop()
