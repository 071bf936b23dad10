"""A child process under test: its log, its CPU seconds and memory from /proc, a graceful stop and a kill -9.

Only the process itself is ever signalled, by its pid. `Process` belongs to the thread that made it.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

Value = TypeVar("Value")

CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_S = 120.0
UNGIVEN_PORTS = (12_000, 32_000)


class ProcessDiedError(Exception):
    """The process ended by itself while something was expected of it; the message ends with its log."""


class Process:
    """One running child. `log` collects stdout and stderr together; a restart appends to the same file.

    `was_killed` says that `kill` ended it, or somebody who said so: its exit code then means nothing.
    """

    def __init__(self, command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self.log = log
        self.was_killed = False
        self._log_start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **(env or {})}
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal, as subprocess has it."""
        return self._popen.poll()

    def log_text(self) -> str:
        """What this run wrote so far."""
        with self.log.open("rb") as file:
            file.seek(self._log_start)
            return file.read().decode(errors="replace")

    def wait_for_log(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until a line matches. Raises ProcessDiedError, or TimeoutError with the log's end."""
        expression = re.compile(pattern)

        def found() -> re.Match[str] | None:
            match = expression.search(self.log_text())
            if match is None:
                self.check_alive()
            return match

        return wait_until(found, timeout_s, lambda: f"no {pattern!r} in the log:\n{self.log_text()[-3000:]}")

    def check_alive(self) -> None:
        if self.exit_code is not None:
            raise ProcessDiedError(f"{self.command[0]} ended with {self.exit_code}:\n{self.log_text()[-3000:]}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """SIGTERM, and SIGKILL when that takes too long; the exit code."""
        if self.exit_code is None:
            self._popen.terminate()
            try:
                self._popen.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._popen.kill()
        return self._popen.wait()

    def kill(self) -> None:
        """kill -9, and wait until the kernel has taken the process away."""
        self.was_killed = self.was_killed or self.exit_code is None
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(signal.SIGKILL)
        self._popen.wait()

    def wait(self, timeout_s: float) -> int:
        """Wait for the process to end by itself."""
        return self._popen.wait(timeout_s)

    def cpu_seconds(self) -> float:
        """User and system time of all its threads since it started."""
        # The name may hold spaces and parentheses; the fields are counted from behind it.
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND

    def rss_bytes(self) -> int:
        return self._status_bytes("VmRSS")

    def peak_rss_bytes(self) -> int:
        return self._status_bytes("VmHWM")

    def voluntary_switches(self) -> int:
        """How often its threads went to sleep of themselves: a bound on how often they woke."""
        total = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    total += int(line.split()[1])
        return total

    def _status_bytes(self, field: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise ProcessDiedError(f"{self.command[0]} ({self.pid}) has no {field}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def wait_until(condition: Callable[[], Value | None], timeout_s: float, message: str | Callable[[], str]) -> Value:
    """Poll until the condition gives something true, and return that. Raises TimeoutError with the message.

    The last look begins after the timeout: whoever was kept from looking for so long is not judged by an old answer.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = 0.002
    while True:
        is_last = time.monotonic() > deadline
        value = condition()
        if value:
            return value
        if is_last:
            raise TimeoutError(message() if callable(message) else message)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.1)


def let_pass(duration_s: float) -> None:
    """Let others go on for a while: a load of some length, a blow at a random moment. Never to wait for something."""
    time.sleep(duration_s)


def free_port() -> int:
    """A port that is free now, for servers that cannot bind port 0 and say which it became.

    It lies below those that the system gives to clients and to port 0 (32768 and up), so that none of these takes it
    before the server, which may be a JVM, gets there.
    """
    # Not the tests' own seeds: two processes would be given the same port.
    dice = random.SystemRandom()
    for _ in range(100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", dice.randrange(*UNGIVEN_PORTS)))
            return int(probe.getsockname()[1])
    raise OSError(f"no free port in {UNGIVEN_PORTS}")
