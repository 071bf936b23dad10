"""The timer forgets what is taken back; the scheduler repeats, never beside itself, and leaves nothing behind."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from kavka.broker.waiting.scheduler import Scheduler
from kavka.broker.waiting.timer import SPARE_TICKS, Timer, TimerEntry
from tests.support.processes import let_pass, wait_until

FAR_MS = 2**31 - 1


def died(failure: BaseException) -> None:
    raise AssertionError("a background thread died") from failure


@pytest.fixture
def timer() -> Iterator[Timer]:
    deaths: list[BaseException] = []
    timer = Timer(deaths.append)
    timer.start()
    yield timer
    timer.stop()
    assert not deaths


@pytest.fixture
def scheduler(timer: Timer) -> Iterator[Scheduler]:
    scheduler = Scheduler(timer, 2, died)
    yield scheduler
    scheduler.stop()


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 60, "it does not come to that")


def _once_stopped(scheduler: Scheduler, job: Callable[[], object]) -> None:
    """Run `job` a moment after the stop has begun: a job that ended before would come again."""

    def run() -> None:
        until(lambda: scheduler.stopped)
        let_pass(0.05)
        job()

    threading.Thread(target=run).start()


def test_cancelled_entries_far_ahead_leave_nothing(timer: Timer) -> None:
    timer.schedule(lambda: None, FAR_MS)
    for number in range(5 * SPARE_TICKS):
        timer.cancel(timer.schedule(lambda: None, FAR_MS - 50 * number))

    assert timer.pending == 1
    assert len(timer._buckets) == 1
    assert len(timer._ticks) <= SPARE_TICKS + 3


def test_cancelling_twice_or_too_late_takes_nobody_else_along(timer: Timer) -> None:
    ran: list[str] = []
    entries: list[TimerEntry] = []

    def begin() -> None:
        # On the timer's own thread: it can run nothing meanwhile, however long this takes.
        first = timer.schedule(lambda: ran.append("first"), 30)
        timer.schedule(lambda: ran.append("second"), 30)
        timer.cancel(first)
        timer.cancel(first)
        entries.append(first)

    timer.schedule(begin, 0)
    until(lambda: bool(ran))
    timer.cancel(entries[0])

    assert ran == ["second"]


def test_an_entry_nearer_than_all_others_wakes_the_timer(timer: Timer) -> None:
    ran = threading.Event()
    timer.schedule(lambda: None, FAR_MS)
    let_pass(0.02)
    timer.schedule(ran.set, 10)

    assert ran.wait(60)


def test_a_delay_longer_than_the_system_can_sleep_does_no_harm(timer: Timer) -> None:
    ran = threading.Event()
    timer.schedule(lambda: None, 2**63 - 1)
    let_pass(0.02)
    timer.schedule(ran.set, 0)

    assert ran.wait(60)


def test_stopping_runs_nothing_that_is_left() -> None:
    timer = Timer(lambda failure: None)
    timer.start()
    ran: list[int] = []
    timer.schedule(lambda: ran.append(1), FAR_MS)

    timer.stop()

    assert not timer._thread.is_alive()
    assert ran == []
    timer.stop()


def test_a_callback_may_schedule_and_cancel(timer: Timer) -> None:
    ran = threading.Event()
    later = timer.schedule(ran.set, 60)

    def callback() -> None:
        timer.cancel(later)
        timer.schedule(ran.set, 0)

    timer.schedule(callback, 0)

    assert ran.wait(60)


def test_a_job_repeats_at_the_interval_it_asks_for_and_survives_its_failures(scheduler: Scheduler) -> None:
    runs: list[int] = []

    def job() -> None:
        runs.append(len(runs))
        raise ZeroDivisionError

    scheduler.every("job", lambda: 5, job, first_ms=0)

    until(lambda: len(runs) >= 3)


def test_a_slow_job_never_runs_beside_itself(scheduler: Scheduler) -> None:
    running = threading.Lock()
    overlaps: list[bool] = []

    def job() -> None:
        if not running.acquire(blocking=False):
            overlaps.append(True)
            return
        let_pass(0.02)
        running.release()
        overlaps.append(False)

    scheduler.every("slow", lambda: 1, job, first_ms=0)

    until(lambda: len(overlaps) >= 4)
    assert True not in overlaps


def test_stop_waits_for_what_runs_and_starts_nothing_more(timer: Timer) -> None:
    scheduler = Scheduler(timer, 1, died)
    started, may_end = threading.Event(), threading.Event()
    ended: list[int] = []

    def job() -> None:
        started.set()
        may_end.wait(60)
        ended.append(1)

    scheduler.every("job", lambda: 1, job, first_ms=0)
    assert started.wait(60)
    _once_stopped(scheduler, may_end.set)

    scheduler.stop()

    assert ended == [1]
    let_pass(0.05)
    assert (ended, timer.pending) == ([1], 0)


def test_stop_waits_for_a_pool_that_was_resized_away(timer: Timer) -> None:
    scheduler = Scheduler(timer, 1, died)
    started, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def job() -> None:
        started.set()
        may_end.wait(60)
        ended.set()

    scheduler.soon(job)
    assert started.wait(60)
    scheduler.resize(3)
    _once_stopped(scheduler, may_end.set)

    scheduler.stop()

    assert ended.is_set()


def test_pools_that_were_resized_away_are_kept_only_while_they_work(scheduler: Scheduler) -> None:
    started, may_end = threading.Event(), threading.Event()

    def job() -> None:
        started.set()
        may_end.wait(60)

    scheduler.soon(job)
    assert started.wait(60)
    for threads in (1, 2) * 20:
        scheduler.resize(threads)
    assert len(scheduler._unfinished) == 2

    may_end.set()

    until(lambda: len(scheduler._unfinished) == 1)


def test_changes_of_intervals_hold_no_job_back() -> None:
    now = {"ms": 0, "interval_ms": 2_000}
    timer = Timer(died, lambda: now["ms"] * 1_000_000)
    scheduler = Scheduler(timer, 1, died)
    scheduler.every("job", lambda: now["interval_ms"], lambda: None)
    [entry] = scheduler._entries.values()

    for after_ms, interval_ms in ((1_200, 2_000), (1_500, 60_000), (1_900, 2_000)):
        now.update(ms=after_ms, interval_ms=interval_ms)
        scheduler.intervals_changed()
        assert scheduler._entries == {"job": entry}

    now["interval_ms"] = 50
    scheduler.intervals_changed()
    assert timer.left_ms(scheduler._entries["job"]) <= 60
    scheduler.stop()


def test_jobs_go_on_while_pools_are_resized(scheduler: Scheduler) -> None:
    ran: list[str] = []
    stop = threading.Event()

    def resize() -> None:
        size = 1
        while not stop.is_set():
            size = size % 3 + 1
            scheduler.resize(size)

    resizer = threading.Thread(target=resize)
    resizer.start()
    for _ in range(100):
        scheduler.soon(lambda: ran.append(threading.current_thread().name))
    stop.set()
    resizer.join()

    until(lambda: len(ran) == 100)
    assert threading.current_thread().name not in ran


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (2, 1), (5, 2), (10, 5)])
def test_fsyncs_leave_half_of_the_threads_to_others(timer: Timer, threads: int, at_once: int) -> None:
    scheduler = Scheduler(timer, threads, died)
    disk_answers, ran = threading.Event(), threading.Event()
    flushing: list[int] = []

    def flush() -> None:
        flushing.append(1)
        disk_answers.wait(60)

    for _ in range(20):
        scheduler.flush_soon(flush)
    until(lambda: len(flushing) == at_once)
    if threads > 1:
        scheduler.soon(ran.set)
        assert ran.wait(60)
    assert len(flushing) == at_once

    scheduler.resize(max(threads - 1, 1))
    disk_answers.set()
    scheduler.stop()
    assert len(flushing) == 20, "who was told that it comes must not wait for ever"


def test_fsyncs_come_in_the_order_in_which_they_were_asked_for_and_after_failures_too(timer: Timer) -> None:
    scheduler = Scheduler(timer, 1, died)
    ran: list[int] = []

    def flush(number: int) -> None:
        ran.append(number)
        raise OSError(5, "input/output error")

    for number in range(10):
        scheduler.flush_soon(partial(flush, number))
    until(lambda: len(ran) == 10)
    scheduler.stop()
    scheduler.flush_soon(lambda: ran.append(10))

    assert ran == list(range(11))


def test_after_the_stop_a_single_job_runs_where_it_is_asked_for(timer: Timer) -> None:
    scheduler = Scheduler(timer, 1, died)
    scheduler.stop()
    ran: list[str] = []

    scheduler.soon(lambda: ran.append(threading.current_thread().name))
    scheduler.every("job", lambda: 1, lambda: ran.append("never"))

    let_pass(0.03)
    assert ran == [threading.current_thread().name]


def test_a_job_goes_on_where_its_interval_cannot_be_told(timer: Timer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.broker.waiting.scheduler.RETRY_MS", 1)
    scheduler = Scheduler(timer, 1, died)
    runs: list[int] = []

    def interval_ms() -> float:
        raise ValueError("no such setting")

    scheduler.every("job", interval_ms, lambda: runs.append(1), first_ms=0)

    until(lambda: len(runs) > 2)
    scheduler.stop()


def test_work_waits_for_a_thread_where_none_can_be_started(timer: Timer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka.broker.waiting.scheduler.RETRY_MS", 1)
    scheduler = Scheduler(timer, 1, died)
    start = threading.Thread.start
    refusals: list[threading.Thread] = []

    def starts_late(thread: threading.Thread) -> None:
        if len(refusals) < 3:
            refusals.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts_late)
    ran: list[str] = []
    scheduler.soon(lambda: ran.append("single"))
    scheduler.every("job", lambda: FAR_MS, lambda: ran.append("job"), first_ms=0)

    until(lambda: sorted(ran) == ["job", "single"])
    scheduler.stop()


def test_what_is_meant_to_end_a_thread_is_heard_of(timer: Timer) -> None:
    deaths: list[BaseException] = []
    scheduler = Scheduler(timer, 1, deaths.append)

    def end() -> None:
        raise SystemExit(3)

    scheduler.soon(end)
    until(lambda: bool(deaths))
    scheduler.stop()

    assert [type(failure) for failure in deaths] == [SystemExit]
