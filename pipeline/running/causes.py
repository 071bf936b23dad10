"""The one line that matters in what Spark, Java and Python's workers say when something failed."""

import re
from typing import Final

MOST_CHARACTERS: Final = 500
_PYTHON: Final = re.compile(r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Failure)): (.+)$")
_CAUSED_BY: Final = re.compile(r"^Caused by: (?:[\w.$]+\.)?([\w$]+)(?:: (.*))?$")
_JAVA: Final = re.compile(r"^(?:[a-z][\w$]*\.)+([A-Z][\w$]*)(?:: (.*))?$")
_WRAPPERS: Final = re.compile(r"^(SparkException|PythonException|PySparkRuntimeError|PySparkException|Py4J\w+)$")
_NOISE: Final = re.compile(r"^(An error occurred while calling |Job aborted |Lost task )")
_OF_THE_STREAM: Final = re.compile(r"^\[STREAM_FAILED\] Query \[.*?\] terminated with exception: ")
_OURS: Final = frozenset({"RuntimeError", "ValueError", "SinkError", "Exception", "SecretError"})
"""Kinds that say nothing that their text does not."""


def cause(error: BaseException) -> str:
    """What went wrong, on one line: the innermost cause that has a text, without stack traces."""
    text = str(error)
    python = _last_python(text)
    if python is not None:
        return _short(python)
    for match in reversed([found for line in text.splitlines() if (found := _CAUSED_BY.match(line.strip()))]):
        if match[2]:
            return _short(f"{match[1]}: {match[2]}")
    first = _first_line(text)
    return _short(first) if first else type(error).__name__


def _last_python(text: str) -> str | None:
    """The last line of the last traceback of Python's that is there."""
    found = None
    for line in text.splitlines():
        match = _PYTHON.match(line.strip())
        if match is None or _WRAPPERS.match(match[1]) or line.strip().startswith("Caused by"):
            continue
        if not _JAVA.match(line.strip()) or "kavka" in line:
            found = match[2] if match[1] in _OURS or "kavka" in line else f"{match[1]}: {match[2]}"
    return found


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        java = _JAVA.match(line)
        if java is not None and java[2]:
            return f"{java[1]}: {java[2]}"
    plain = [line for line in lines if not _NOISE.match(line)]
    return _OF_THE_STREAM.sub("", (plain or lines or [""])[0])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else line[: MOST_CHARACTERS - 3] + "..."
