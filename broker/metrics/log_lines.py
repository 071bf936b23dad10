"""What a line of the broker's log looks like, and the daemon's logging set-up.

    2026-11-21T11:19:27.123Z level=INFO thread=io-0 component=broker.network msg="connection closed" peer=10.0.0.7:5123

One event is one line: control characters are escaped, so that nothing a client sends can forge a line. Messages of the
form `text key=value` keep their pairs as they are; `extra={"fields": {...}}` adds further ones. Only the daemon's entry
point calls `configure`: an embedded broker leaves its host's logging alone.
"""

import logging
import re
import sys
import time
from collections.abc import Mapping
from typing import Final, TextIO

from kavka.broker.metrics.bounded_warnings import FloodGate

ROOT: Final = "kavka"
AUDIT: Final = "kafka.authorizer.logger"
"""What clients are refused, by Kafka's name. It has a level of its own, for DEBUG tells of every request."""
TRACE: Final = 5
LEVELS: Final = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Levels by log4j's names, which Kafka's tools send."""
_PYTHON_NAMES: Final = {"WARNING": logging.WARNING, "CRITICAL": logging.CRITICAL}
_MAX_LINE_CHARACTERS: Final = 16_384
_PAIR: Final = re.compile(
    r"""[\w.]+=(?:
        '(?:[^'\\]|\\.)*'(?=\ |$)
        |"(?:[^"\\]|\\.)*"(?=\ |$)
        |[^ ]*
    )""",
    re.VERBOSE | re.DOTALL,
)


class LineFormatter(logging.Formatter):
    """Formats a record as one line of key=value pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; a traceback follows in the `trace` field, its line ends escaped."""
        text, pairs = _split_pairs(record.getMessage())
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        parts = [
            f"{seconds}.{int(record.msecs):03d}Z",
            f"level={record.levelname}",
            f"thread={_value(record.threadName or '-')}",
            f"component={record.name.removeprefix(ROOT + '.')}",
            f"msg={_quoted(text.rstrip(':, '))}",
        ]
        if pairs:
            parts.append(escaped(pairs))
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            parts.extend(f"{name}={_value(str(value))}" for name, value in fields.items())
        if record.exc_info:
            parts.append(f"trace={_quoted(self.formatException(record.exc_info))}")
        line = " ".join(parts)
        return line if len(line) <= _MAX_LINE_CHARACTERS else line[:_MAX_LINE_CHARACTERS] + "..."


def level_of(text: str) -> int:
    """The level of that name, log4j's or Python's, in upper or lower case; INFO for none. Raises ValueError."""
    name = text.strip().upper() or "INFO"
    level = LEVELS.get(name, _PYTHON_NAMES.get(name))
    if level is None:
        raise ValueError(f"{text[:100]!r} is no log level; expected one of {', '.join(LEVELS)}")
    return level


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send the broker's log to `stream` (standard error). For the daemon's entry point only.

    Raises ValueError for an unknown level, before anything is changed.
    """
    number = level_of(level)
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(FloodGate())
    for name, lowest in ((ROOT, number), (AUDIT, max(number, logging.INFO))):
        logger = logging.getLogger(name)
        logger.setLevel(lowest)
        for old in list(logger.handlers):
            logger.removeHandler(old)
        logger.addHandler(handler)
        logger.propagate = False


def _split_pairs(message: str) -> tuple[str, str]:
    """The text and the `key=value` pairs at its end; a value that `repr` has quoted may have spaces."""
    position = first = 0
    while position <= len(message):
        pair = _PAIR.match(message, position)
        if pair is not None:
            end = pair.end()
        else:
            end = message.find(" ", position)
            end = len(message) if end < 0 else end
            first = end + 1
        position = end + 1
    return message[:first].rstrip(" "), message[first:]


def _value(text: str) -> str:
    return text if text and not any(c in ' "=\\' or not c.isprintable() for c in text) else _quoted(text)


def _quoted(text: str) -> str:
    plain = escaped(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{plain}"'


def escaped(text: str) -> str:
    """The text with its control characters escaped, so that it is one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
