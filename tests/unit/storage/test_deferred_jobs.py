"""Jobs for later run when they are due, in order, and one that fails doesn't stop the others."""

import errno

from kavka.storage.deferred_jobs import DeferredJobs


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
    assert len(jobs) == 0


def test_a_job_may_add_another() -> None:
    done: list[str] = []
    jobs = DeferredJobs(lambda: 0)
    jobs.add(0, lambda: jobs.add(0, lambda: done.append("again")))
    assert jobs.run_due() == 2
    assert done == ["again"]
