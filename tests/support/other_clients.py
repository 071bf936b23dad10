"""Clients in other languages as small programs: built or installed once into `.cache/`, then run like any user's.

Each gets a topic with three partitions, a count and codecs; message n of a codec goes to partition n % 3 with key
`key-n`, value `codec-n` and header codec=codec. What was read comes back as lines: partition offset key value header.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.support.locks import locked
from tests.support.server import RunningServer

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "tests" / "clients"
CACHE = REPOSITORY / ".cache" / "clients"
PARTITIONS = 3
MESSAGES = 30
BUILD_TIMEOUT_S = 540
RUN_TIMEOUT_S = 120
READ_TIMEOUT_MS = 60_000


class ClientFailedError(Exception):
    """A client program ended with an error; the message holds its output."""


def go_client(name: str) -> Path:
    """The program built from tests/clients/go/NAME. Skips without Go, or when its modules can't be had."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (https://go.dev/dl/)")
    binary = CACHE / "go" / f"{name}-{_fingerprint(SOURCES / 'go')}"
    if not binary.exists():
        # One build at a time: they fill the same caches, and what is there under its last name is whole.
        with locked(CACHE / "go.lock"):
            if not binary.exists():
                cache = CACHE / "go"
                env = {"GOPATH": str(cache / "path"), "GOCACHE": str(cache / "build"), "GOFLAGS": "-modcacherw"}
                unfinished = binary.with_name(f"{binary.name}.unfinished")
                _prepare(["go", "build", "-o", str(unfinished), f"./{name}"], SOURCES / "go", env)
                unfinished.rename(binary)
    return binary


def node_client(name: str) -> list[str]:
    """The command that runs tests/clients/node/NAME.js. Skips without Node, or when npm can't install."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed (https://nodejs.org)")
    folder = CACHE / f"node-{_fingerprint(SOURCES / 'node')}"
    if not (folder / "node_modules").is_dir():
        with locked(CACHE / "node.lock"):
            if not (folder / "node_modules").is_dir():
                unfinished = folder.with_name(f"{folder.name}.unfinished")
                shutil.rmtree(unfinished, ignore_errors=True)
                shutil.copytree(SOURCES / "node", unfinished)
                _prepare(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], unfinished, {})
                shutil.rmtree(folder, ignore_errors=True)
                unfinished.rename(folder)
    return ["node", str(folder / f"{name}.js")]


def run_client(command: Sequence[str | Path], *arguments: object) -> list[str]:
    """Run a client; its lines. Raises ClientFailedError."""
    words = [*map(str, command), *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ClientFailedError(
            f"{words[:2]} ended with {done.returncode}:\n{done.stdout[-500:]}\n{done.stderr[-2500:]}"
        )
    return done.stdout.splitlines()


def read_back(broker: RunningServer, topic: str, count: int) -> list[str]:
    """The same lines as read by kafka-python, for clients that read in groups only."""
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, consumer_timeout_ms=READ_TIMEOUT_MS, enable_auto_commit=False
    )
    lines = []
    with closing(consumer):
        parts = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        for record in consumer:
            header = dict(record.headers).get("codec", b"-").decode()
            lines.append(f"{record.partition} {record.offset} {record.key.decode()} {record.value.decode()} {header}")
            if len(lines) == count:
                break
    return lines


def check_lines(lines: Iterable[str], codecs: Sequence[str], *, headers: bool = True) -> None:
    """Whether everything was read: each message once, in its partition, in order, at the next offset."""
    found: dict[int, list[tuple[str, ...]]] = {index: [] for index in range(PARTITIONS)}
    for line in lines:
        partition, offset, *rest = line.split(" ")
        assert int(offset) == len(found[int(partition)]), f"offsets are not in a row: {line}"
        found[int(partition)].append(tuple(rest))
    for index in range(PARTITIONS):
        assert found[index] == [
            (f"key-{number}", f"{codec}-{number}", codec if headers else "-")
            for codec in codecs
            for number in range(index, MESSAGES, PARTITIONS)
        ]


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _prepare(command: list[str], folder: Path, env: dict[str, str]) -> None:
    """Build or install; without network that is a reason to skip."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:3])} failed: {done.stderr[-1500:]}")
