"""Our members while their broker is stopped, killed and frozen: nothing is skipped, and all go on."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.group_members import FAST_GROUPS, Feeder, Group, Member
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import let_pass

PARTITIONS = 4
SHORT = {"session.timeout.ms": "10000"}
WAYS: list[Any] = [
    pytest.param({"partition.assignment.strategy": "range", **SHORT}, id="range"),
    pytest.param({"partition.assignment.strategy": "cooperative-sticky", **SHORT}, id="cooperative"),
    pytest.param({"group.protocol": "consumer"}, id="consumer"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_group_outlives_stops_kills_and_freezes_of_its_broker(
    tmp_path: Path, topic: str, way: dict[str, str]
) -> None:
    with KavkaProcess(tmp_path / "broker", FAST_GROUPS) as broker:
        group = Group(broker, tmp_path, topic)
        try:
            group.create_topic(PARTITIONS)
            members = [group.join("kavka", way), group.join("kavka", {**way, "member.commit": "async"})]
            group.wait_until_shared(members, PARTITIONS)
            with Feeder(broker, topic, PARTITIONS) as feeder:
                for end in (broker.stop, broker.kill):
                    _wait_for_commits(group)
                    end()
                    broker.start()
                _wait_for_commits(group)
                os.kill(broker.process.pid, signal.SIGSTOP)
                let_pass(3.0)
                os.kill(broker.process.pid, signal.SIGCONT)
                _wait_for_commits(group)
                ends = feeder.stop()
            group.wait_until_done(ends)
            for member in members:
                member.close()
            group.assert_sound(ends)
        finally:
            group.end()


def _wait_for_commits(group: Group) -> None:
    for member in group.members:
        member.wait_for(partial(_has_committed, len(member.of("committed")) + 2))


def _has_committed(more_than: int, member: Member) -> bool:
    return len(member.of("committed")) > more_than
