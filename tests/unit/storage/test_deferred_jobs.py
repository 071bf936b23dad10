"""Jobs for later run when they are due, in order, and one that fails doesn't stop the others."""

import errno

import pytest

from kavka.storage.deferred_jobs import MOST_TRIES, RETRY_DELAY_MS, DeferredJobs


def test_jobs_run_once_when_due_and_in_order() -> None:
    now = [1_000]
    done: list[str] = []
    jobs = DeferredJobs(lambda: now[0])
    jobs.add(200, lambda: done.append("late"))
    jobs.add(100, lambda: done.append("first"))
    jobs.add(100, lambda: done.append("second"))
    assert jobs.run_due() == 0
    now[0] += 100
    assert jobs.run_due() == 2
    assert done == ["first", "second"]
    now[0] += 100
    assert jobs.run_due() == 1
    assert jobs.run_due() == 0
    assert done == ["first", "second", "late"]


def test_a_job_that_the_disk_refuses_leaves_the_others() -> None:
    done: list[str] = []
    jobs = DeferredJobs(lambda: 0)

    def refused() -> None:
        raise OSError(errno.EACCES, "no")

    jobs.add(0, refused)
    jobs.add(0, lambda: done.append("next"))
    jobs.run_due()
    assert done == ["next"]


@pytest.mark.parametrize(("reason", "tries"), [(errno.EIO, MOST_TRIES), (errno.EMFILE, 4 * MOST_TRIES)])
def test_a_job_that_is_refused_is_tried_again_and_logged_once(
    caplog: pytest.LogCaptureFixture, reason: int, tries: int
) -> None:
    """What doesn't pass by itself is left to the next start at last."""
    now_ms = 0
    tried_ms: list[int] = []
    jobs = DeferredJobs(lambda: now_ms)

    def refused() -> None:
        tried_ms.append(now_ms)
        raise OSError(reason, "refused")

    jobs.add(0, refused)
    while len(jobs) and len(tried_ms) < 4 * MOST_TRIES:
        jobs.run_due()
        now_ms += RETRY_DELAY_MS

    assert len(tried_ms) == tries
    assert tried_ms[:4] == [0, RETRY_DELAY_MS, 3 * RETRY_DELAY_MS, 7 * RETRY_DELAY_MS]
    messages = [record.getMessage() for record in caplog.records]
    assert sum("tried again" in message for message in messages) == 1
    assert sum("next start" in message for message in messages) == (1 if reason == errno.EIO else 0)
    assert len(jobs) == (0 if reason == errno.EIO else 1)


def test_a_job_may_add_another() -> None:
    done: list[str] = []
    jobs = DeferredJobs(lambda: 0)
    jobs.add(0, lambda: jobs.add(0, lambda: done.append("again")))
    assert jobs.run_due() == 2
    assert done == ["again"]
