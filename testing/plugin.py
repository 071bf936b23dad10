"""The pytest plugin: a broker, one that tests share, or a cluster. Imports only pytest until a fixture is used.

    def test_orders(kavka_broker):
        kavka_broker.create_topic("orders")
        run_what_is_tested(kavka_broker.bootstrap_servers)
        kavka_broker.assert_records("orders", [b"first"])

A test whose broker has died fails, whatever it found itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from kavka.testing.broker import Broker
    from kavka.testing.cluster import Cluster
    from kavka.testing.shared import SharedBroker

_CHECKS: Final = pytest.StashKey[list[Callable[[], None]]]()
"""Of a test: what raises when one of its brokers has died."""


@pytest.fixture
def kavka_settings() -> dict[str, str]:
    """Settings of the test's own brokers, by Kafka's names: to be overridden in a module or a class."""
    return {}


@pytest.fixture
def kavka_broker(request: pytest.FixtureRequest, kavka_settings: dict[str, str]) -> Iterator[Broker]:
    """A broker of the test's own, serving; gone after the test."""
    from kavka.testing import Broker

    with Broker(kavka_settings) as broker:
        _watch(request, broker.check)
        yield broker


@pytest.fixture(scope="session")
def kavka_shared_settings() -> dict[str, str]:
    """Settings of the broker that tests share: to be overridden in the top conftest.py."""
    return {}


@pytest.fixture(scope="session")
def _kavka_session(kavka_shared_settings: dict[str, str]) -> Iterator[Broker]:
    from kavka.testing import Broker

    with Broker(kavka_shared_settings) as broker:
        yield broker


@pytest.fixture
def kavka_shared(request: pytest.FixtureRequest, _kavka_session: Broker) -> SharedBroker:
    """The session's broker (under xdist each worker's), with a prefix of the test's own for topics and groups."""
    from kavka.testing.shared import SharedBroker, prefix_of

    _watch(request, _kavka_session.check)
    return SharedBroker(_kavka_session, prefix_of(request.node.nodeid))


@pytest.fixture
def kavka_cluster(request: pytest.FixtureRequest, kavka_settings: dict[str, str]) -> Iterator[Callable[..., Cluster]]:
    """Makes a cluster of so many brokers, as often as it is called; all are gone after the test."""
    from kavka.testing import Cluster

    with ExitStack() as clusters:

        def make(size: int = 3) -> Cluster:
            cluster = clusters.enter_context(Cluster(size, kavka_settings))
            _watch(request, cluster.check)
            return cluster

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail the test if a broker of its own has died; where it has failed by itself, say so beside its reason."""
    try:
        yield
    except BaseException as failure:
        for died in _deaths(item):
            failure.add_note(str(died))
        raise
    for died in _deaths(item):
        raise died


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Of records that are compared: all that is in the topic."""
    rows = sys.modules.get("kavka.testing.rows")
    if rows is None:
        return None
    for found, other in ((left, right), (right, left)):
        if isinstance(found, rows.Records):
            return [f"records {op} {other!r}", *found.shown().splitlines()]
    return None


def _watch(request: pytest.FixtureRequest, check: Callable[[], None]) -> None:
    request.node.stash.setdefault(_CHECKS, []).append(check)


def _deaths(item: pytest.Item) -> Iterator[Exception]:
    for check in item.stash.get(_CHECKS, []):
        try:
            check()
        except AssertionError as died:
            yield died
