"""Records of tests bear any time: a pass of retention, half a minute after the start, must not take them meanwhile."""

from pathlib import Path

from tests.support.kavka_process import KavkaProcess


def test_retention_leaves_what_tests_write_unless_they_ask_for_it(tmp_path: Path) -> None:
    assert "log.retention.ms=-1" in KavkaProcess(tmp_path).command()
    asked = KavkaProcess(tmp_path, {"log.retention.ms": "5"}).command()
    assert [word for word in asked if word.startswith("log.retention")] == ["log.retention.ms=5"]
