"""`kavka groups watch` on a terminal, which it redraws, and into a pipe, where it adds lines."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.client import Admin, Producer
from kavka.client.admin import NewTopic, TopicPartition
from tests.integration.cli.conftest import Kavka
from tests.support.kavka_process import KavkaProcess
from tests.support.server import RunningServer
from tests.support.terminal import CTRL_C, Terminal

WAIT_S = 120
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


def produce(bootstrap: str, topic: str, count: int) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for _ in range(count):
            producer.send(topic, b"x", partition=0)
        producer.flush()


@pytest.fixture
def admin(kavka: KavkaProcess) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kavka.bootstrap) as client:
        yield client


def test_a_terminal_is_redrawn_until_ctrl_c(kavka: KavkaProcess, admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.alter_group_offsets("watched", {TopicPartition(topic, 0): 0})
    produce(kavka.bootstrap, topic, 3)
    command = [str(Path(sys.executable).with_name("kavka")), "groups", "watch", "--group", "watched"]
    with Terminal([*command, "--interval-ms", "100", "--bootstrap-server", kavka.bootstrap]) as terminal:
        terminal.wait_for(f"{topic}     3  ", WAIT_S)
        assert HIDE_CURSOR in terminal.shown
        produce(kavka.bootstrap, topic, 4)
        terminal.wait_for(f"{topic}     7  ", WAIT_S)
        assert terminal.shown.count("LAG-SECONDS") >= 2, "the table is drawn anew"
        assert "\x1b[2K" in terminal.shown, "in its place"
        terminal.press(CTRL_C)
        assert terminal.wait(WAIT_S) == 130
    assert terminal.shown.rindex(SHOW_CURSOR) > terminal.shown.rindex(HIDE_CURSOR)
    assert "Traceback" not in terminal.shown


def test_a_pipe_gets_lines(broker: RunningServer, run: Kavka, topic: str) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
        admin.alter_group_offsets(f"{topic}.group", {TopicPartition(topic, 0): 1})
    produce(broker.bootstrap, topic, 3)
    done = run("groups", "watch", "--group", f"{topic}.group", "--interval-ms", "100", "--updates", "2")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert [line[1:6] for line in lines] == [[f"{topic}.group", "Empty", "members=0", f"topic={topic}", "lag=2"]] * 2
    assert lines[0][0] < lines[1][0]
    assert "\x1b" not in done.out
    missing = run("groups", "watch", "--group", f"{topic}.none")
    assert (missing.code, missing.out, len(missing.err.splitlines())) == (1, "", 1)
