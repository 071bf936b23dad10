"""Whether the comparison of replicas, at the end of the chaos program, compares anything."""

from pathlib import Path
from typing import Any

import pytest

from tests.chaos import replicas
from tests.chaos.replicas import differences
from tests.chaos.stage import PartitionState

PLACE = ("visits", 0)


class Broker:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def folders_of(self, place: object) -> list[Path]:
        return list(self.directory.glob("*/visits-0"))


class OnDisk:
    """A stage whose brokers have these bytes of the partition's log."""

    def __init__(self, directory: Path, logs: dict[int, bytes], told: bool) -> None:
        self.brokers = {number: Broker(directory / str(number)) for number in logs}
        self._state = PartitionState(1, tuple(logs), tuple(logs))
        self._is_told = told
        for number, records in logs.items():
            folder = directory / str(number) / "data-0" / "visits-0"
            folder.mkdir(parents=True)
            (folder / "0.log").write_bytes(records)

    def partitions(self) -> dict[tuple[str, int], PartitionState]:
        return {PLACE: self._state} if self._is_told else {}


@pytest.mark.parametrize(
    ("logs", "told", "found"),
    [
        ({1: b"ab", 2: b"ab"}, True, []),
        ({1: b"ab", 2: b"ac"}, True, ["('visits', 0) differs: 1: 2 bytes, 2: 2 bytes"]),
        ({1: b"ab", 2: b"ab"}, False, ["nobody tells which replicas there are"]),
    ],
)
def test_replicas_are_equal_only_where_they_were_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: dict[int, bytes], told: bool, found: list[str]
) -> None:
    monkeypatch.setattr(replicas, "EQUAL_S", 0.0)
    stage: Any = OnDisk(tmp_path, logs, told)
    assert differences(stage) == found
