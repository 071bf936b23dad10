"""Small Java programs that live longer than one call, driven line by line."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.java import QUIET, SHORT_LIVED, JavaFailedError
from tests.support.java_classes import compiled


def java_command(name: str, *arguments: object, bundle: str = "kafka-4.3", heap: str = "128m") -> list[str]:
    """The command that runs tests/java/NAME.java. Skips as maven.classpath does."""
    options = [f"-Xmx{heap}", *SHORT_LIVED, QUIET]
    return ["java", *options, "-cp", compiled(name, bundle), name, *map(str, arguments)]


class JavaProgram:
    """A program that answers each line it gets with a line. `with` ends it. Owned by one thread."""

    def __init__(self, name: str, log: Path, *arguments: object, bundle: str = "kafka-4.3") -> None:
        self._log = log
        with log.open("ab") as complaints:
            self._popen = subprocess.Popen(
                java_command(name, *arguments, bundle=bundle),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        """Send a line; its answer is asked for later, while something else happens."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def answer(self) -> str:
        """The next line it prints. Raises JavaFailedError when it ended instead."""
        assert self._popen.stdout is not None
        line = self._popen.stdout.readline()
        if not line:
            raise JavaFailedError(f"ended with {self._popen.wait()}:\n{self._log.read_text()[-3000:]}")
        return line.rstrip("\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Nothing of it is to be kept: a producer that waits for a broker would not end in time.
        self._popen.kill()
        self._popen.communicate()
