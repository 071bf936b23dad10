"""Whether the comparison of replicas, at the end of the chaos program, compares anything."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos import replicas
from tests.chaos.replicas import differences, unmoved
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


class Hesitant:
    """A stage where nobody controls, then nobody answers in time, and then somebody has to be asked again."""

    brokers: dict[int, Broker] = {}

    def __init__(self) -> None:
        self.left: list[Exception | int] = [KeyError(-1), TimeoutError(), 41, 0]

    def controller(self) -> int:
        return -1

    def told(self) -> Any:
        return SimpleNamespace(topics=[])

    def ask(self, *_: object) -> Any:
        next_one = self.left.pop(0)
        if isinstance(next_one, Exception):
            raise next_one
        return SimpleNamespace(responses=[SimpleNamespace(error_code=next_one)])


def test_the_throttle_of_moves_is_lifted_when_somebody_controls_again() -> None:
    stage: Any = Hesitant()
    assert unmoved(stage) == []
    assert stage.left == []


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
