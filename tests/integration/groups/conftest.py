"""A group per test; its members are processes, and gone when the test ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.group_members import Group
from tests.support.server import RunningServer


@pytest.fixture
def group(broker: RunningServer, topic: str, tmp_path: Path) -> Iterator[Group]:
    found = Group(broker, tmp_path, topic)
    yield found
    found.end()
