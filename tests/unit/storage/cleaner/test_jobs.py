"""Broker and worker understand each other; what isn't a reply is refused."""

import json

import pytest

from kavka.storage.cleaner.jobs import (
    ABORTED,
    CleanedGroup,
    CleanedLog,
    CleaningFailed,
    CleanJob,
    Reply,
    cleaned_names,
    decode_job,
    decode_reply,
    encode_job,
    encode_reply,
)
from kavka.storage.log_answers import AbortedTransaction

JOB = CleanJob(
    topic="tópic \n",
    partition=3,
    folder="/data/a b",
    token="t",
    segments=[(0, 10), (5, 20)],
    first_dirty_offset=1,
    end_offset=9,
    aborted=[AbortedTransaction(1, 2, 3, 4)],
    producers=[(1, -1, 0)],
    now_ms=1,
    delete_retention_ms=2,
    segment_bytes=3,
    index_bytes=4,
    index_interval_bytes=5,
    map_bytes=6,
    map_load_factor=0.9,
    chunk_bytes=7,
    bytes_per_second=1.7976931348623157e308,
)


def test_a_job_arrives_as_it_was_sent_in_one_line() -> None:
    line = encode_job(JOB)
    assert line.count(b"\n") == 1
    assert decode_job(json.loads(line)["clean"]) == JOB


@pytest.mark.parametrize(
    "reply",
    [
        CleanedGroup([0, 5], [".log"], 3, -1, 0),
        CleanedLog(9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
        CleaningFailed(ABORTED, "why\nnot"),
    ],
)
def test_a_reply_arrives_as_it_was_sent(reply: Reply) -> None:
    line = encode_reply(reply)
    assert line.count(b"\n") == 1
    assert decode_reply(line) == reply


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{}", b"[]", b"1", b'{"group": 1}', b'{"other": {}}', b'{"failed": {"x": 1}}', b"\xff\n"]
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own errors are of that kind, too
        decode_reply(line)


def test_names_say_whose_they_are() -> None:
    group = CleanedGroup([1000], [".log", ".index"], 0, -1, 0)
    assert cleaned_names(group, "tok") == [
        "00000000000000001000.log.tok.cleaned",
        "00000000000000001000.index.tok.cleaned",
    ]
