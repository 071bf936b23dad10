"""Kafka's command line tools, many commands in one JVM (tests/java/Tools.java)."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.java import QUIET, SHORT_LIVED, JavaFailedError
from tests.support.java_classes import compiled


class JavaTools:
    """The tools of one bundle (kafka-3.9, kafka-4.3). Commands run one after the other. Owned by one thread.

    Kafka's `Exit` is caught; what calls `System.exit`, as ClusterTool's `--help` does, ends the JVM, and so all of it.
    """

    def __init__(self, bundle: str) -> None:
        self.bundle = bundle
        command = ["java", "-Xmx256m", *SHORT_LIVED, QUIET, "-cp", compiled("Tools", bundle), "Tools"]
        self._popen = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def run(self, tool: str, *arguments: str | Path) -> str:
        """What the tool printed, errors too. Raises JavaFailedError when it exits with something else than 0."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write("\t".join([tool, *map(str, arguments)]).encode() + b"\n")
        self._popen.stdin.flush()
        code, _, size = self._popen.stdout.readline().decode().partition(" ")
        text = self._popen.stdout.read(int(size or 0)).decode()
        if code != "0":
            raise JavaFailedError(f"{tool} ended with {code or 'the JVM'}:\n{text}")
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._popen.kill()
        self._popen.communicate()
