"""What a program that measures clients tells the processes that it starts."""

import json

import pytest

from benchmarks.client_load import Load, load_parser, loads_of, show_rates


def test_a_load_reaches_the_process_that_runs_it_as_it_is() -> None:
    parser = load_parser(None, "topic", 1_000, ("kavka", "other"))
    given = parser.parse_args(["--sizes", "50", "1000", "--codecs", "none", "lz4", "--bootstrap", "one:9"])
    loads = list(loads_of(given, 100))
    # As many bytes of large records as of those of 100: fewer of them.
    assert [(each.records, each.size_bytes, each.codec) for each in loads] == [
        (1_000, 50, "none"),
        (1_000, 50, "lz4"),
        (100, 1_000, "none"),
        (100, 1_000, "lz4"),
    ]
    sent = loads[-1]._replace(topic="topic-1000", a_batch=20)
    run = parser.parse_args(["--client", "kavka", "--load", json.dumps(sent)])
    assert (run.client, run.load) == ("kavka", Load("one:9", "topic-1000", 100, 1_000, "lz4", 20))


def test_a_run_too_short_to_be_measured_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_rates({"kavka": 2_000.0, "columns": 0.0, "other": 1_000.0})
    shown = capsys.readouterr().out.splitlines()
    assert "more --records" in shown[1]
    assert shown[2].endswith("kavka  2.00 x")
