"""What a command loads, and what it does on a terminal."""

import os
import pty
import subprocess
import sys

import pytest

LISTING = """
import sys
from kavka.cli.main import main
from kavka.cli import reaching
from kavka.client.admin import Admin, TopicListing
reaching.await_broker = lambda _settings, _timeout_ms: None
Admin.list_topics = lambda self, **_: {"orders": TopicListing("orders", bytes(16), False)}
main(["topics", "list"])
print(*sorted(sys.modules), file=sys.stderr)
"""
NEEDLESS = ("kavka.broker", "kavka.storage", "kavka.config.broker_config")
TINTED = """
from kavka.cli.showing import BAD, Table, table_lines
print(*table_lines(Table("elect", ("topic",), [("orders\\x1b[2J",)], lambda row: BAD)), sep="\\n")
"""


def test_listing_topics_loads_no_more_than_it_needs() -> None:
    done = subprocess.run([sys.executable, "-c", LISTING], capture_output=True, text=True, check=True)
    assert done.stdout == "orders\n"
    loaded = set(done.stderr.split())
    assert {"rich", "numpy", "json"} & loaded == set()
    ours = {name for name in loaded if name.startswith("kavka.")}
    assert not [name for name in ours if name.startswith(NEEDLESS)]
    assert len({name for name in ours if name.startswith("kavka.protocol.messages.")}) <= 2
    assert len(ours) <= 107


@pytest.mark.parametrize(
    ("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_is_for_terminals_that_want_it(environment: dict[str, str], is_coloured: bool) -> None:
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    leader, follower = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", TINTED], stdout=follower, env=plain | environment, check=True)
        shown = os.read(leader, 4096).decode()
    finally:
        os.close(leader)
        os.close(follower)
    assert ("\x1b[31morders" in shown) == is_coloured
    assert "\x1b[2J" not in shown, "what comes from outside steers the terminal"


def test_there_is_no_colour_in_a_pipe() -> None:
    done = subprocess.run([sys.executable, "-c", TINTED], capture_output=True, text=True, check=True)
    assert done.stdout == "TOPIC\norders\\x1b[2J\n"
