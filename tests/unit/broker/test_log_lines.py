"""Log lines: one event is one line, whatever is logged."""

import io
import logging
import sys
from collections.abc import Iterator

import pytest

from kavka.broker.metrics import log_lines
from kavka.broker.metrics.log_lines import LineFormatter


def line(message: str, *args: object, fields: dict[str, object] | None = None, error: bool = False) -> str:
    info = None
    if error:
        try:
            raise ValueError("first\nsecond")
        except ValueError:
            info = sys.exc_info()
    record = logging.LogRecord("kavka.broker.network", logging.INFO, "f.py", 1, message, args, info)
    record.threadName = "io 0"
    record.created, record.msecs = 1_795_252_571.25, 250.0
    if fields is not None:
        record.fields = fields
    return LineFormatter().format(record)


def test_a_line_has_time_level_thread_component_message_and_pairs() -> None:
    assert line("connection closed peer=%s:%d", "10.0.0.7", 5123) == (
        '2026-11-21T09:16:11.250Z level=INFO thread="io 0" component=broker.network '
        'msg="connection closed" peer=10.0.0.7:5123'
    )


def test_fields_are_added_and_quoted_where_they_must_be() -> None:
    shown = line("done", fields={"topic": "a b", "count": 3, "empty": ""})

    assert shown.endswith('msg="done" topic="a b" count=3 empty=""')


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("too many open files", "'too many open files'"),
        ("it's x=1 \\ gone", '"it\'s x=1 \\\\ gone"'),
        ("'\" y=2", "'\\'\" y=2'"),
        ("", "''"),
    ],
)
def test_pairs_stay_pairs_when_a_quoted_value_has_spaces(reason: str, shown: str) -> None:
    text = "cannot accept it=s listener=%s reason=%r retry_ms=%d"

    assert line(text, "PLAIN", reason, 5).endswith(f'msg="cannot accept" it=s listener=PLAIN reason={shown} retry_ms=5')


@pytest.mark.parametrize(
    ("message", "text", "pairs"),
    [
        ("a=b is odd", "a=b is odd", ""),
        ("a=b", "", "a=b"),
        ("open reason='never closed x=1", "open reason='never closed", "x=1"),
        ("half reason='one two'three x=1", "half reason='one two'three", "x=1"),
        ("", "", ""),
    ],
)
def test_only_pairs_at_the_end_are_pairs(message: str, text: str, pairs: str) -> None:
    assert line(message).partition(" msg=")[2] == f'"{text}" {pairs}'.rstrip()


@pytest.mark.parametrize("evil", ["a\nlevel=ERROR", "a\r\nb", "a\x1b[31mred", "a\u2028b", "a\x00b", "a\ud800b"])
def test_what_a_client_sends_cannot_forge_a_line(evil: str) -> None:
    for shown in (line("client_id=%s", evil), line("hello %s", evil), line("x", fields={"client": evil})):
        assert shown.isprintable()
        shown.encode()


def test_a_traceback_stays_on_the_line() -> None:
    shown = line("failed", error=True)

    assert "\n" not in shown
    assert 'trace="Traceback' in shown
    assert "ValueError: first\\nsecond" in shown


def test_a_line_is_bounded() -> None:
    assert len(line("x" * 10**6)) < 20_000


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger(log_lines.ROOT)
    before = (found.level, list(found.handlers), found.propagate)
    yield found
    found.level, found.handlers[:], found.propagate = before


def test_configuring_twice_logs_once_and_leaves_the_host_alone(logger: logging.Logger) -> None:
    host_handlers = list(logging.getLogger().handlers)
    stream = io.StringIO()

    log_lines.configure("INFO", stream)
    log_lines.configure("WARNING", stream)
    logging.getLogger("kavka.broker.test").warning("seen")
    logging.getLogger("kavka.broker.test").info("not seen")

    assert stream.getvalue().count("msg=") == 1
    assert logging.getLogger().handlers == host_handlers


@pytest.mark.parametrize(
    ("text", "level"),
    [("debug", logging.DEBUG), (" Warn ", logging.WARNING), ("WARNING", logging.WARNING), ("", logging.INFO)],
)
def test_a_level_may_be_written_in_any_case(logger: logging.Logger, text: str, level: int) -> None:
    log_lines.configure(text, io.StringIO())

    assert logger.level == level


@pytest.mark.parametrize("text", ["loud", "10", "NOTSET", "debug info"])
def test_an_unknown_level_is_named_with_those_there_are(logger: logging.Logger, text: str) -> None:
    before = (logger.level, list(logger.handlers))

    with pytest.raises(ValueError, match=f"{text}.*TRACE, DEBUG, INFO, WARN, ERROR, FATAL"):
        log_lines.configure(text, io.StringIO())

    assert (logger.level, list(logger.handlers)) == before
