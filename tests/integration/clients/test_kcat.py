"""kcat against a real broker process: the tool an operator reaches for first."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.server import RunningServer

TIMEOUT_S = 60.0


@pytest.mark.round_trip
def test_lines_come_back_in_order_with_their_keys(broker: RunningServer, kcat: Path, topic: str) -> None:
    lines = [f"key-{number}:value {number}" for number in range(100)]
    _kcat(kcat, broker, "-P", "-t", topic, "-K", ":", "-p", "0", text_in="\n".join(lines) + "\n")

    read = _kcat(kcat, broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-K", ":")

    assert read.splitlines() == lines


def test_headers_null_values_and_offsets_are_kept(broker: RunningServer, kcat: Path, topic: str) -> None:
    _kcat(kcat, broker, "-P", "-t", topic, "-p", "0", "-H", "site=kavka", "-k", "one", text_in="with header\n")
    # -Z: an empty line is a null value.
    _kcat(kcat, broker, "-P", "-t", topic, "-p", "0", "-Z", "-K", ":", text_in="two:\n")

    read = _kcat(kcat, broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o %k %S %h\\n")

    assert read.splitlines() == ["0 one 11 site=kavka", "1 two -1 "]


def test_reading_starts_where_it_is_told(broker: RunningServer, kcat: Path, topic: str) -> None:
    _kcat(kcat, broker, "-P", "-t", topic, "-p", "0", text_in="".join(f"{number}\n" for number in range(50)))

    last = _kcat(kcat, broker, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q")
    middle = _kcat(kcat, broker, "-C", "-t", topic, "-p", "0", "-o", "20", "-c", "2", "-q")
    end = _kcat(kcat, broker, "-Q", "-t", f"{topic}:0:-1")

    assert last.split() == ["47", "48", "49"]
    assert middle.split() == ["20", "21"]
    assert "offset 50" in end


def test_metadata_names_broker_topics_and_leaders(broker: RunningServer, kcat: Path, topic: str) -> None:
    _kcat(kcat, broker, "-P", "-t", topic, text_in="x\n")

    metadata = json.loads(_kcat(kcat, broker, "-L", "-J", "-t", topic))

    (node,) = metadata["brokers"]
    assert node["name"] == broker.bootstrap
    (found,) = metadata["topics"]
    assert found["topic"] == topic
    assert {partition["leader"] for partition in found["partitions"]} == {node["id"]}


def _kcat(kcat: Path, broker: RunningServer, *arguments: str, text_in: str = "") -> str:
    done = subprocess.run(
        [str(kcat), "-b", broker.bootstrap, "-X", "topic.metadata.refresh.interval.ms=1000", *arguments],
        input=text_in,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
