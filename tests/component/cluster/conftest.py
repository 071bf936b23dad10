"""The stage on which controllers are tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.registry.embedded import FILE_NAME
from tests.support.controller_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path / FILE_NAME)
    yield opened
    opened.close()
