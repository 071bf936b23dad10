"""What brokers in the tests' own process log as errors, which fails the test that did not announce it."""

import logging
import re
from types import TracebackType
from typing import Self


class LoggedErrors(logging.Handler):
    """`with LoggedErrors() as errors:` raises AssertionError at its end for errors that are not expected.

    Any thread may log; the rest is for the thread that opened it.
    """

    def __init__(self, *expected: str) -> None:
        super().__init__(logging.ERROR)
        self._expected = list(expected)
        self._lines: list[str] = []

    def expect(self, *patterns: str) -> None:
        """Errors that one of these is found in are part of what is tested, logged already or not."""
        self._expected += patterns

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    def __enter__(self) -> Self:
        logging.getLogger("kavka").addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("kavka").removeHandler(self)
        unexpected = [line for line in self._lines if not any(re.search(one, line) for one in self._expected)]
        if error is None:
            assert unexpected == [], "\n".join(unexpected)
        elif unexpected:
            error.add_note("\n".join(["logged meanwhile:", *unexpected]))
