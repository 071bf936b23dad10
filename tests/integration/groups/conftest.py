"""Groups whose members are processes, gone when the test ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import maven
from tests.support.group_members import Group
from tests.support.server import RunningServer

NewGroup = Callable[[str], Group]


@pytest.fixture
def new_group(broker: RunningServer, topic: str, tmp_path: Path) -> Iterator[NewGroup]:
    """Makes a group with a topic and a directory of its own, for a name that differs within the test."""
    groups: list[Group] = []

    def make(name: str) -> Group:
        directory = tmp_path / name
        directory.mkdir()
        groups.append(Group(broker, directory, f"{topic}.{name}"))
        return groups[-1]

    yield make
    for group in groups:
        group.end()


@pytest.fixture
def group(new_group: NewGroup) -> Group:
    """The one group of a test that needs no other."""
    return new_group("g")


@pytest.fixture(scope="session")
def java() -> str:
    """The library name of today's Java client. Skips where Java is missing."""
    maven.classpath("kafka-4.3")
    return "kafka-4.3"
