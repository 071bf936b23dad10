"""The registries that one suite is run over, and the stage on which controllers are tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.cluster.registry.base import Registry
from kavka.cluster.registry.embedded import FILE_NAME, EmbeddedRegistry
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from tests.support.controller_stage import Stage
from tests.support.registries import KINDS, Clock, open_zookeeper


@pytest.fixture(params=KINDS)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    opened: Registry
    if request.param == "embedded":
        opened = EmbeddedRegistry(tmp_path / FILE_NAME, Clock())
    elif request.param == "memory":
        opened = MemoryRegistry(MemoryEnsemble(Clock()))
    else:
        opened = open_zookeeper(request.getfixturevalue("zookeeper").bootstrap)
    yield opened
    opened.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    opened = Stage(tmp_path / FILE_NAME)
    yield opened
    opened.close()
