"""A worker's process beside its broker's: what it answers, and how it ends when the broker does."""

import os
import subprocess
import sys
from pathlib import Path

from kavka.protocol.records.batch import Record, build_batch
from kavka.storage.cleaner.jobs import encode_job
from kavka.storage.cleaner.rounds import make_job
from kavka.storage.cleaner.selection import look_at
from kavka.storage.cleaner.worker_process import MODULE
from tests.support.compaction import broker_config, roll
from tests.support.partition_logs import START_MS, append_batch, open_log

TIMEOUT_S = 60.0


def test_a_worker_whose_broker_takes_no_replies_any_more_ends_without_an_abort(tmp_path: Path) -> None:
    log = open_log(tmp_path / "visits-0", cleanup_policy="compact")
    for _ in range(2):
        append_batch(log, bytearray(build_batch([Record(0, START_MS, b"key", b"value")])))
    roll(log)
    job = encode_job(make_job(look_at(log, START_MS), broker_config(), START_MS, float("inf")))
    log.close()

    # A broker's death closes both of a worker's pipes; which of them the worker looks at first is chance.
    replies, worker_end = os.pipe()
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE],
        stdin=subprocess.PIPE,
        stdout=worker_end,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    os.close(worker_end)
    os.close(replies)
    assert worker.stdin is not None
    assert worker.stderr is not None
    try:
        worker.stdin.write(job)
        worker.stdin.flush()
        assert worker.wait(TIMEOUT_S) == 0
        assert worker.stderr.read() == b""
    finally:
        worker.kill()
        worker.wait()
        worker.stdin.close()
        worker.stderr.close()
