"""What the chaos program lets brokers log as errors, and when."""

from pathlib import Path
from typing import Any

import pytest

from tests.chaos import run
from tests.chaos.brokers import ChaosBroker

LINE = 'time=2026-11-22T20:00:00 level=ERROR msg="broker 2 cannot host 3 replicas, visits-0 first"\n'


class Brokers:
    """As much of a stage as has brokers that have logged something."""

    def __init__(self, directory: Path) -> None:
        self.broker = ChaosBroker(directory, 1)
        self.brokers = {1: self.broker}
        self.stage: Any = self

    def log(self, text: str) -> None:
        with (self.broker.directory / "kavka.log").open("a") as log:
            log.write(text)


@pytest.fixture
def brokers(tmp_path: Path) -> Brokers:
    return Brokers(tmp_path)


def test_replicas_that_cannot_be_hosted_are_expected_in_rounds_that_break_disks_alone(brokers: Brokers) -> None:
    brokers.log("level=INFO msg=begun\n" + LINE)
    assert run._complaints(brokers.stage, breaks_disks=True) == []
    brokers.log(LINE)
    assert run._complaints(brokers.stage, breaks_disks=False) == [f"broker-1: {LINE.strip()}"]
    assert run._complaints(brokers.stage, breaks_disks=False) == []


def test_a_line_that_is_half_written_belongs_to_the_round_in_which_it_ends(brokers: Brokers) -> None:
    brokers.log(LINE[:40])
    assert run._complaints(brokers.stage, breaks_disks=False) == []
    brokers.log(LINE[40:])
    assert run._complaints(brokers.stage, breaks_disks=True) == []
