"""Spark's process: what it inherits of the job's."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.pipeline.running.session import Jvm


@pytest.fixture
def _blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.usefixtures("_blocked")
def test_signals_stay_blocked_here_while_java_starts_and_are_not_in_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked: list[set[int]] = []

    def launch(conf: object, popen: dict[str, Any]) -> subprocess.Popen[bytes]:
        popen["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
        process = subprocess.Popen(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"], **popen)
        blocked.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        process.wait()
        return process

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    log = tmp_path / "spark.log"
    Jvm({"spark.master": "local[1]"}, (), log)
    assert {signal.SIGTERM, signal.SIGINT} <= blocked[0]
    shown = dict(line.split(":\t") for line in log.read_text().splitlines())
    assert int(shown["SigBlk"], 16) == 0
    assert int(shown["SigIgn"], 16) & (1 << (signal.SIGINT - 1))
