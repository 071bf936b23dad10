"""A program on a terminal of its own: what it shows there, and keys for it."""

import os
import pty
import select
import signal
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

CTRL_C: Final = b"\x03"
SIZE: Final = 65536


class Terminal:
    """`with Terminal([program, ...]) as terminal:` runs it as the terminal's foreground; its end kills what still runs.

    Owned by one thread.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)
        self._shown = b""
        self._code: int | None = None
        self._pid, self._descriptor = 0, -1

    @property
    def shown(self) -> str:
        """All that it has shown so far, with what steers the terminal."""
        return self._shown.decode(errors="replace")

    def __enter__(self) -> Self:
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            try:
                # A shell has what it runs in the background ignore it, and tests may run there.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                os.environ["TERM"] = "xterm"
                os.environ["COLUMNS"] = "120"
                os.execv(self._command[0], self._command)
            finally:
                os._exit(127)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._descriptor)

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait_for(self, text: str, timeout_s: float) -> None:
        """Until it has shown this. Raises AssertionError when it ends or is silent before."""
        deadline = time.monotonic() + timeout_s
        while text not in self.shown:
            assert time.monotonic() < deadline, f"no {text!r} in:\n{self.shown}"
            assert self._read(), f"it ended without {text!r}:\n{self.shown}"

    def shows(self, text: str, times: int) -> bool:
        """Whether it has shown this so often, after a look at what there is to be read."""
        self._read()
        return self.shown.count(text) >= times

    def wait(self, timeout_s: float) -> int:
        """Until it ends; its exit code."""
        deadline = time.monotonic() + timeout_s
        while self._read():
            assert time.monotonic() < deadline, f"it goes on:\n{self.shown}"
        _, status = os.waitpid(self._pid, 0)
        self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def _read(self) -> bool:
        """Take what it shows within a second; whether it may show more."""
        # Not select(): a worker that has run long may have more descriptors than that takes.
        polled = select.poll()
        polled.register(self._descriptor, select.POLLIN)
        if not polled.poll(1_000):
            return True
        try:
            data = os.read(self._descriptor, SIZE)
        except OSError:
            return False  # Linux says so when the last program has left the terminal
        self._shown += data
        return bool(data)
