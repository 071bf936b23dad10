"""Where a query goes on whose checkpoint is lost, and whose sink knows how far it came."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.running.positions import starting
from kavka.pipeline.source.log_bounds import LogBounds
from kavka.pipeline.source.logs import log_bounds
from kavka.pipeline.source.read_options import ReadOptions
from tests.support.scripted_logs import ScriptedLogs

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class _Assigned(ScriptedLogs):
    """Of two partitions the second is not assigned."""

    def partitions(self, subscription: object) -> list[TopicPartition]:
        return [T0]


def begun(options: Mapping[str, str], known: Mapping[str, Mapping[int, int]], logs: ScriptedLogs) -> object:
    def opened(checked: ReadOptions) -> LogBounds:
        assert checked.subscription.matches("t")
        return logs

    return json.loads(starting(options, known, opened))


BROKERS = {"bootstrap.servers": "x:1", "subscribe": "t", "pushdown": "false"}


@pytest.mark.parametrize(
    ("option", "offset"),
    [
        ({}, 20),
        ({"startingOffsets": "latest"}, 20),
        ({"startingOffsets": "earliest"}, 2),
        ({"startingOffsets": '{"t":{"0":1,"1":7}}'}, 7),
        ({"startingOffsets": '{"t":{"0":1,"1":-2}}'}, 2),
        ({"startingTimestamp": "1767225600000"}, 11),
    ],
)
def test_a_partition_that_the_sink_does_not_know_begins_where_the_job_says(
    option: Mapping[str, str], offset: int
) -> None:
    logs = ScriptedLogs({T0: 1, T1: 2}, {T0: 10, T1: 20}, {T1: 11})
    assert begun({**BROKERS, **option}, {"t": {0: 5}}, logs) == {"t": {"0": 5, "1": offset}}
    assert logs.is_closed


def test_what_the_sink_knows_and_the_job_does_not_read_is_left_out() -> None:
    options = {"bootstrap.servers": "x:1", "assign": '{"t":[0]}'}
    assert begun(options, {"t": {0: 5, 1: 6}, "u": {0: 1}}, _Assigned({}, {T0: 10})) == {"t": {"0": 5}}


def test_without_brokers_the_partitions_are_those_of_the_files(tmp_path: Path) -> None:
    folder = tmp_path
    for name in ("t-0", "t-1", "u-0"):
        (folder / name).mkdir()
        (folder / name / "00000000000000000000.log").write_bytes(b"")
    known = {"t": {0: 5, 1: 6}}
    assert json.loads(starting({"path": str(folder), "subscribe": "t"}, known, log_bounds)) == {"t": {"0": 5, "1": 6}}
