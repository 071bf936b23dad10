"""How Hypothesis runs, what a test's place and marks mean, and that CI skips nothing.

Machines are slow and busy, and what CI finds must be found again: with CI set the examples are the same in each run. On
a developer's machine they are random, so that more of them are tried over the days; `make soak` tries many more.
"""

import logging
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, register_random, settings

from kavka.client import dice as clients
from kavka.storage import environment as logs
from tests.support import maven
from tests.support.long_files import expected_seconds
from tests.support.zookeeper_process import BUNDLE, ZooKeeperProcess

SOAK = "soak"
WHEN_ASKED_FOR = (SOAK, "containers")
"""Marks of tests that run where `-m` names them."""
IN_CI = bool(os.environ.get("CI"))
MAY_SKIP_IN_CI = (
    "a file system cannot be mounted here",
    "strace may not attach here",
    "this machine has one family only",
    "this system has no syncfs",
    "the extra kerberos is not installed here",
    "MIT Kerberos is not installed",
    "a broker of this kind has no ",
)
"""What a container may forbid, or its kernel lack, an extra that is compiled against the system's Kerberos, and rows of
a broker that cannot have them. Everything else can be installed, so that a skip hides a fault."""

settings.register_profile(
    "house",
    deadline=None,
    derandomize=IN_CI,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    SOAK,
    settings.get_profile("house"),
    derandomize=False,
    max_examples=2000,
    print_blob=True,
)
settings.load_profile("house")
# Our own chance, as Python's: the same each time an example is run.
for dice in (clients.DICE, logs.DICE):
    register_random(dice)


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """A ZooKeeper for tests that keep to a root path of their own and leave it running."""
    maven.classpath(BUNDLE)
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as process:
        yield process


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts processes, leave out what `-m` has to ask for, and let long files begin first."""
    for item in items:
        if "integration" in item.path.relative_to(config.rootpath).parts:
            item.add_marker("integration")
    unasked = [mark for mark in WHEN_ASKED_FOR if mark not in config.option.markexpr]
    left_out = [item for item in items if any(map(item.get_closest_marker, unasked))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: -expected_seconds(item.path.relative_to(config.rootpath)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """Who quietens our log for good takes from later failures what was logged, and silence there tells something."""
    yield
    quiet = [name for name in ("kavka", "kavka.client", "kavka.broker") if not _is_heard(logging.getLogger(name))]
    assert not quiet, f"warnings of {quiet} are not heard of any more"


def _is_heard(logger: logging.Logger) -> bool:
    """Whether its warnings come to the handlers that pytest gives to the root."""
    return logger.isEnabledFor(logging.WARNING) and not logger.disabled and logger.propagate


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_to_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_to_skip(report)
    return report


def _refuse_to_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not (IN_CI and report.skipped):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(allowed in reason for allowed in MAY_SKIP_IN_CI):
        report.outcome = "failed"
        report.longrepr = f"CI must not skip it. {reason}"
