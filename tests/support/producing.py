"""Runs `numbered_producer` processes and holds what was acknowledged against what a topic has in the end."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.java_programs import java_command
from tests.support.numbered_producer import PARTITIONS
from tests.support.processes import wait_until
from tests.support.wire import Wire, read_values

END_TIMEOUT_S = 200.0
MORE_TIMEOUT_S = 120.0
REPOSITORY = Path(__file__).resolve().parents[2]


class Producing:
    """One producer process. `finish` before `acknowledged` and `errors` are whole. Owned by one thread."""

    def __init__(self, directory: Path, bootstrap: str, topic: str, name: str, library: str, rate: int = 1000) -> None:
        self.name = name
        self._output = directory / f"{name}.acknowledged"
        self._complaints = directory / f"{name}.log"
        command = _command(library, bootstrap, topic, name, rate)
        with self._output.open("wb") as output, self._complaints.open("wb") as complaints:
            self._popen = subprocess.Popen(
                command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints
            )

    def wait_for_more(self, timeout_s: float = MORE_TIMEOUT_S) -> None:
        """Wait until something is acknowledged from now on."""
        before = self._output.stat().st_size

        def grown() -> bool:
            if self._popen.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self._complaints.read_text()[-2000:]}")
            return self._output.stat().st_size > before

        wait_until(
            grown, timeout_s, lambda: f"{self.name} gets nothing through:\n{self._complaints.read_text()[-2000:]}"
        )

    def finish(self) -> int:
        """Have it flush and end; how many messages it sent."""
        self._popen.terminate()
        self._popen.wait(END_TIMEOUT_S)
        lines = self._output.read_text().splitlines()
        assert lines, self._complaints.read_text()
        assert lines[-1].startswith("END"), f"{lines[-3:]} {self._complaints.read_text()[-2000:]}"
        return int(lines[-1].split()[1])

    def acknowledged(self) -> dict[int, dict[int, int]]:
        """By partition: the offset of every acknowledged number."""
        found: dict[int, dict[int, int]] = defaultdict(dict)
        for line in self._output.read_text().splitlines():
            if line[0].isdigit():
                partition, number, offset = map(int, line.split())
                found[partition][number] = offset
        return found

    def acknowledged_end(self, partition: int) -> int:
        """The offset behind the last message that was acknowledged: to be seen by readers, sooner or later."""
        acknowledged = self.acknowledged()[partition]
        # The numbers count, too: it is not always told where a duplicate lies.
        return max([*acknowledged, *acknowledged.values()], default=-1) + 1

    def errors(self) -> list[str]:
        return [line for line in self._output.read_text().splitlines() if line.startswith("ERROR")]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()


def _command(library: str, *arguments: object) -> list[str]:
    """`library`: one that numbered_producer knows, or java, for the one in tests/java."""
    if library == "java":
        return java_command("NumberedProducer", *arguments)
    return [sys.executable, "-m", "tests.support.numbered_producer", library, *map(str, arguments)]


def assert_nothing_lost_or_doubled(host: str, port: int, topic: str, producers: list[Producing]) -> int:
    """Every acknowledged message is where it was said to be, once, and each producer's in order: how many there are.

    A message whose acknowledgement was lost with the connection may be there, too, but only in its place.
    """
    total = 0
    with Wire(host, port) as wire:
        for partition in range(PARTITIONS):
            end = max((producer.acknowledged_end(partition) for producer in producers), default=0)
            values = read_values(wire, topic, partition=partition, end=end)
            total += len(values)
            numbers: dict[str, list[int]] = defaultdict(list)
            offsets: dict[str, dict[int, int]] = defaultdict(dict)
            for offset, value in enumerate(values):
                name, written_partition, number = (value or b"").decode().split(":")
                assert int(written_partition) == partition
                numbers[name].append(int(number))
                offsets[name][int(number)] = offset
            for producer in producers:
                found = numbers[producer.name]
                assert found == list(range(len(found))), f"{producer.name}-{partition}: {_first_wrong(found)}"
                acknowledged = producer.acknowledged()[partition]
                # -1: a duplicate that an older client could not place.
                wrong = {
                    number: (offset, offsets[producer.name].get(number))
                    for number, offset in acknowledged.items()
                    if offset not in (-1, offsets[producer.name].get(number)) or number >= len(found)
                }
                assert not wrong, (
                    f"{producer.name}-{partition}: {len(wrong)} lost or elsewhere: {list(wrong.items())[:5]}"
                )
    return total


def _first_wrong(numbers: list[int]) -> str:
    for place, number in enumerate(numbers):
        if place != number:
            return f"{number} where {place} belongs, after {numbers[max(0, place - 3) : place]}"
    return "sound"
