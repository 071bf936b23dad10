"""The broker's end of a worker process: starting it, talking to it, having it end."""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from kavka.storage.cleaner.jobs import (
    CleanedGroup,
    CleanJob,
    Reply,
    decode_reply,
    encode_abort,
    encode_job,
    encode_rate,
)

MODULE: Final = "kavka.storage.cleaner.worker"
STOP_TIMEOUT_S: Final = 5.0
_LINE_LIMIT_BYTES: Final = 16 << 20

_log: Final = logging.getLogger(__name__)


class WorkerDiedError(Exception):
    """The process ended in the middle of a job."""


class Worker(Protocol):
    """What runs jobs; a process, or a test's double."""

    def run(self, job: CleanJob) -> Iterator[Reply]:
        """Do a job; the last reply ends it. Raises WorkerDiedError."""
        ...

    def set_rate(self, bytes_per_second: float) -> None: ...

    def abort(self, token: str) -> None: ...

    def stop(self) -> None: ...


class WorkerProcess:
    """One process. `run` belongs to one thread; `set_rate`, `abort` and `stop` to any (`_lock` orders what is written).

    Started by `-m`, in a session of its own: a fork of a process with threads can deadlock, and a terminal's Ctrl-C is
    for the broker. It ends when its input is closed, and so, whatever happens, with the broker.
    """

    def __init__(self) -> None:
        """Raises OSError."""
        import subprocess

        root = str(Path(__file__).resolve().parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
        )
        _log.info("cleaner worker started pid=%d", self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, job: CleanJob) -> Iterator[Reply]:
        """See Worker."""
        if not self._write(encode_job(job)):
            raise WorkerDiedError(self._ending())
        replies = self._process.stdout
        assert replies is not None
        while True:
            try:
                line = replies.readline(_LINE_LIMIT_BYTES)
                if not line.endswith(b"\n"):
                    raise WorkerDiedError(self._ending())
                reply = decode_reply(line)
            except (OSError, ValueError) as error:
                raise WorkerDiedError(f"{self._ending()}: {error}") from error
            yield reply
            if not isinstance(reply, CleanedGroup):
                return

    def set_rate(self, bytes_per_second: float) -> None:
        """Change how many bytes a second it may read and write."""
        self._write(encode_rate(bytes_per_second))

    def abort(self, token: str) -> None:
        """Have the job with that token end soon."""
        self._write(encode_abort(token))

    def stop(self) -> None:
        """End the process, also in the middle of a job, and wait for it. Harmless twice."""
        import subprocess

        process = self._process
        # Its end of the pipe says that it should go; it looks at that beside its work.
        with self._lock, contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            _log.warning("cleaner worker does not end, it is killed pid=%d", process.pid)
            process.kill()
            process.wait()

    def _write(self, line: bytes) -> bool:
        """Whether the process still takes messages."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._lock:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def _ending(self) -> str:
        return f"worker {self._process.pid} ended with {self._process.poll()}"
