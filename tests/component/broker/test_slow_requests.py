"""A request that took long is logged, whichever way it went."""

import logging
from pathlib import Path

import pytest

from kavka.broker.requests import request_runner
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.group_core import GroupCore, commit_frame
from tests.support.partition_logs import batch_of


@pytest.fixture(autouse=True)
def everything_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_runner, "SLOW_NS", -1)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("slow request")]


@pytest.mark.parametrize("inline", [True, False], ids=["by the network thread", "by an I/O thread"])
def test_a_slow_produce_of_a_known_shape_is_logged(
    tmp_path: Path, inline: bool, caplog: pytest.LogCaptureFixture
) -> None:
    core = BrokerCore(tmp_path, inline=inline)
    core.create("visits")
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            core.ask(produce_frame(9, number, {("visits", 0): bytes(batch_of(b"x"))}))
    core.close()

    assert len(lines(caplog)) == 2
    assert lines(caplog)[0].startswith("slow request api=0 version=9 client_id='producer' peer=10.0.0.9 ")


def test_a_slow_commit_of_a_known_shape_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    core = GroupCore(tmp_path, inline=True)
    with caplog.at_level(logging.WARNING):
        for number in range(4):
            core.ask(commit_frame(8, number, [("visits", 0, number)]))
    core.close()

    assert len(lines(caplog)) == 2
    assert lines(caplog)[0].startswith("slow request api=8 version=8 ")
