"""A broker's errors fail the test that did not announce them."""

import logging
from pathlib import Path

import pytest

from tests.support.kavka_process import KavkaProcess
from tests.support.logged_errors import LoggedErrors
from tests.support.processes import Process
from tests.support.server import ComplaintError

QUIET = "echo level=INFO msg=fine"
ERROR = "echo 'level=ERROR msg=\"the disk is gone\"'"
TRACEBACK = "echo 'Traceback (most recent call last):'"


def ended(directory: Path, script: str) -> KavkaProcess:
    """A broker whose process was this shell script, and is over."""
    broker = KavkaProcess(directory)
    broker._process = Process(["sh", "-c", script], directory / "kavka.log")
    broker._process.wait(60)
    return broker


def test_a_quiet_end_is_no_complaint(tmp_path: Path) -> None:
    ended(tmp_path, QUIET).stop()


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        (ERROR, "the disk is gone"),
        (TRACEBACK, "Traceback"),
        (f"{QUIET}; exit 3", "ended with 3 instead of 0"),
        (f"{QUIET}; kill -9 $$", "ended with -9 instead of 0"),
    ],
)
@pytest.mark.parametrize("way", ["stop", "kill"])
def test_an_error_or_a_wrong_end_is_a_complaint(tmp_path: Path, way: str, script: str, complaint: str) -> None:
    broker = ended(tmp_path, script)
    with pytest.raises(ComplaintError, match=complaint):
        getattr(broker, way)()


def test_what_is_announced_is_no_complaint(tmp_path: Path) -> None:
    broker = ended(tmp_path, f"{ERROR}; exit 1")
    broker.expect_errors("disk is gone")
    broker.expected_exit_code = 1
    broker.stop()


def test_a_failing_test_keeps_its_own_reason_and_notes_the_complaint(tmp_path: Path) -> None:
    broker = ended(tmp_path, ERROR)
    failure = ValueError("the test's own")
    broker.__exit__(ValueError, failure, None)
    assert "the disk is gone" in failure.__notes__[0]


def test_what_a_broker_in_the_process_logs_counts_too() -> None:
    log = logging.getLogger("kavka.broker.somewhere")
    with pytest.raises(AssertionError, match="it broke"), LoggedErrors():
        log.error("it broke")
    with LoggedErrors("it broke") as errors:
        errors.expect("and again")
        log.error("it broke")
        log.error("and again")
        log.warning("a warning is none")
