"""Records of tests bear any time: a pass of retention, half a minute after the start, must not take them meanwhile."""

from pathlib import Path

from tests.support.kavka_process import KavkaProcess
from tests.support.running_broker import RunningBroker
from tests.support.running_cluster import RunningCluster


def test_retention_leaves_what_tests_write_unless_they_ask_for_it(tmp_path: Path) -> None:
    assert "log.retention.ms=-1" in KavkaProcess(tmp_path).command()
    asked = KavkaProcess(tmp_path, {"log.retention.ms": "5"}).command()
    assert [word for word in asked if word.startswith("log.retention")] == ["log.retention.ms=5"]


def test_retention_leaves_what_is_written_to_brokers_in_the_tests_process(tmp_path: Path) -> None:
    name = "log.retention.ms"
    assert RunningBroker(tmp_path).settings[name] == "-1"
    assert RunningBroker(tmp_path, {name: "5"}).settings[name] == "5"
    assert RunningCluster("host:1", tmp_path, [1]).settings[1][name] == "-1"
