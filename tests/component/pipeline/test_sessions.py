"""Spark's process: what it inherits of the job's."""

import os
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


@pytest.mark.parametrize(
    ("given", "inherited"),
    [
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LC_ALL": "", "LANG": ""}, "C.UTF-8"),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX"}, "C.UTF-8"),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "de_DE.UTF-8"}, ""),
    ],
)
def test_java_names_files_by_utf8_where_the_locale_says_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], inherited: str
) -> None:
    environments: list[dict[str, str]] = []

    def launch(conf: object, popen: dict[str, Any]) -> None:
        popen["env"] = dict(os.environ)
        environments.append(popen["env"])

    for name in ("LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    Jvm({"spark.master": "local[1]"}, (), None)
    assert [each["LC_ALL"] for each in environments] == [inherited]
