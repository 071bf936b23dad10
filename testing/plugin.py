"""The pytest plugin: a broker, or a cluster. Imports only pytest until a fixture is used.

    def test_orders(kavka_broker):
        kavka_broker.create_topic("orders")
        run_what_is_tested(kavka_broker.bootstrap_servers)
        kavka_broker.assert_records("orders", [b"first"])

A test whose broker has died fails, whatever it found itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kavka.testing.broker import Broker
    from kavka.testing.cluster import Cluster


@pytest.fixture
def kavka_settings() -> dict[str, str]:
    """Settings of the test's brokers, by Kafka's names: to be overridden by a module or a class of tests."""
    return {}


@pytest.fixture
def kavka_broker(kavka_settings: dict[str, str]) -> Iterator[Broker]:
    """A broker of the test's own, serving; gone after the test."""
    from kavka.testing import Broker

    with Broker(kavka_settings) as broker:
        yield broker
        broker.check()


@pytest.fixture
def kavka_cluster(kavka_settings: dict[str, str]) -> Iterator[Callable[[int], Cluster]]:
    """Makes a cluster of so many brokers, as often as it is called; all are gone after the test."""
    from kavka.testing import Cluster

    with ExitStack() as stack:
        made: list[Cluster] = []

        def make(size: int = 3) -> Cluster:
            cluster = stack.enter_context(Cluster(size, kavka_settings))
            made.append(cluster)
            return cluster

        yield make
        for cluster in made:
            cluster.check()


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Of records that are compared: all that is in the topic."""
    import sys

    rows = sys.modules.get("kavka.testing.rows")
    if rows is None:
        return None
    found = left if isinstance(left, rows.Records) else right
    if not isinstance(found, rows.Records):
        return None
    other = right if found is left else left
    return [f"records {op} {other!r}", *found.shown().splitlines()]
