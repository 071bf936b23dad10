"""A trouble that a follower has each second is not logged each second."""

import logging
from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse
from tests.support.replicas import Replicas


def logged(caplog: pytest.LogCaptureFixture, *texts: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(texts)]


def test_a_leader_that_does_not_answer_is_told_of_less_and_less_and_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    caplog.set_level(logging.INFO)

    for _ in range(2):
        replicas.down.add(1)
        for _ in range(25):
            replicas.step(2)
        replicas.down.clear()
        replicas.catch_up([2])

    told = logged(caplog, "no answer", "the leader answers again")
    trouble = [f"no answer fetcher=fetcher-2-1-0 in_a_row={count} error='it is down'" for count in (1, 10)]
    assert told == [*trouble, "the leader answers again fetcher=fetcher-2-1-0 unanswered=25"] * 2
    replicas.close()


def test_a_partition_that_cannot_be_fetched_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.catch_up()
    caplog.set_level(logging.INFO)

    def refuse(answer: FetchResponse) -> None:
        for topic in answer.responses:
            for part in topic.partitions:
                part.error_code = ErrorCode.KAFKA_STORAGE_ERROR

    for _ in range(2):
        replicas.leaders[2, 1].tamper = refuse
        replicas.produce(1, b"a")
        replicas.catch_up([2])
        replicas.leaders[2, 1].tamper = lambda answer: None
        replicas.catch_up([2])
        assert replicas.contents(2) == replicas.contents(1)

    assert len(logged(caplog, "fetch error")) == 2
    replicas.close()


def test_a_leader_that_refuses_whole_fetches_is_told_of_less_and_less(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    replicas = Replicas(tmp_path)
    replicas.elect(1)
    replicas.catch_up()
    replicas.managers[2].fetchers[0]._backoff_ms = lambda: 0  # type: ignore[misc]  # waits for nothing
    caplog.set_level(logging.INFO)

    def refuse(answer: FetchResponse) -> None:
        answer.error_code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    for times, told in ((1, []), (2, ["in_a_row=1"]), (30, ["in_a_row=1", "in_a_row=10"])):
        caplog.clear()
        replicas.leaders[2, 1].tamper = refuse
        for _ in range(times):
            replicas.step(2)
        replicas.leaders[2, 1].tamper = lambda answer: None
        replicas.step(2)

        assert [line.split()[3] for line in logged(caplog, "fetch refused")] == told
    replicas.close()
