"""Kavka beside the Kafka that a module compares it with, and what was met there."""

from collections.abc import Iterator

import pytest

from tests.integration.oracle.answers.comparing import Met
from tests.integration.oracle.answers.scenarios import comparable_kavka
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def kavka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A Kavka of its own for each version of Kafka: both have been asked the same."""
    with comparable_kavka(tmp_path_factory.mktemp("kavka")) as client:
        yield client


@pytest.fixture(scope="module")
def met() -> Met:
    return Met()
