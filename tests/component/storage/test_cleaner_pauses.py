"""For how long the cleaner rests: by the settings of that moment, whatever they say."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.storage.files import Files
from tests.support.cleaner_stage import TIMEOUT_S, FullDisk, Stage, fill
from tests.support.compaction import InlineWorker
from tests.support.processes import wait_until

FOR_EVER = "log.cleaner.backoff.ms=9223372036854775807"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.cleaner.stop()
    made.manager.close()


def test_a_pause_for_ever_ends_with_another_setting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float | None] = []
    wait = threading.Condition.wait

    def noting(condition: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "log-cleaner-0":
            asked.append(timeout)
        return wait(condition, timeout)

    monkeypatch.setattr(threading.Condition, "wait", noting)
    log = stage.log("t")
    stage.cleaner.reconfigure(stage.rig.broker_config(FOR_EVER))
    stage.cleaner.start()
    wait_until(lambda: bool(asked), TIMEOUT_S, "no pause")
    fill(log)

    stage.cleaner.reconfigure(stage.rig.broker_config("log.cleaner.backoff.ms=20"))

    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
    assert stage.deaths == []


def test_a_log_that_failed_waits_by_the_pause_of_now(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.storage.cleaner.log_cleaner.LEAST_PAUSE_MS", 1)
    stage.make_worker = FullDisk
    log = stage.log("t")
    fill(log)
    stage.cleaner.reconfigure(stage.rig.broker_config(FOR_EVER))
    stage.cleaner.start()
    wait_until(lambda: ("t", 0) in stage.cleaner._failures, TIMEOUT_S, "no failure")
    stage.workers[0].run = InlineWorker(Files()).run  # type: ignore[method-assign]  # there is room again

    stage.cleaner.reconfigure(stage.rig.broker_config("log.cleaner.backoff.ms=20"))

    wait_until(lambda: log.clean_offset == 6, TIMEOUT_S, "not compacted")
