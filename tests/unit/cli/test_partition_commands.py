"""`kavka offsets get`, `records delete`, `transactions` and `producers`, with an administrator that asks no broker."""

from pathlib import Path
from unittest.mock import MagicMock, call

import pytest

from kavka.cli.main import main
from kavka.client import TopicPartition
from kavka.client.admin import (
    AbortTransactionSpec,
    IsolationLevel,
    ListOffsetsResultInfo,
    OffsetSpec,
    ProducerState,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kavka.client.api_errors import (
    ItemErrors,
    NotLeaderOrFollowerError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from tests.support.json_documents import assert_golden, document

VISITS_0, VISITS_1 = TopicPartition("visits", 0), TopicPartition("visits", 1)
OPEN = ProducerState(7, 1, 41, 1_767_250_800_000, -1, 12)
IDLE = ProducerState(8, 0, 3, 1_767_250_800_000, 2, -1)


def described(name: str, partitions: int, replicas: tuple[int, ...] = (1,)) -> TopicDescription:
    infos = tuple(TopicPartitionInfo(number, 1, 0, replicas, replicas, ()) for number in range(partitions))
    return TopicDescription(name, bytes(16), is_internal=False, partitions=infos, authorized_operations=None)


@pytest.fixture
def visits(admin: MagicMock) -> MagicMock:
    """An administrator of a cluster with the topic visits, of two partitions."""
    admin.list_topics.return_value = {"visits": TopicListing("visits", bytes(16), is_internal=False)}
    admin.describe_topics.return_value = {"visits": described("visits", 2)}
    return admin


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an hour after the transactions here began."""
    monkeypatch.setattr("time.time_ns", lambda: 1_767_254_400_000_000_000)


def test_offsets_are_lines_as_kafkas_tool_prints_them(visits: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    found = {VISITS_1: ListOffsetsResultInfo(7, -1, 0), VISITS_0: ListOffsetsResultInfo(42, 1_767_250_800_000, -1)}
    visits.list_offsets.return_value = found

    assert main(["offsets", "get", "--topic", "visits", "--time", "max-timestamp"]) == 0
    assert capsys.readouterr().out == "visits:0:42\nvisits:1:7\n"
    visits.list_offsets.assert_called_once_with(
        {VISITS_0: OffsetSpec.MAX_TIMESTAMP, VISITS_1: OffsetSpec.MAX_TIMESTAMP},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
    )
    assert main(["offsets", "get", "--output", "json"]) == 0
    assert_golden("offsets-get", capsys.readouterr().out)


def test_offsets_that_are_not_there_are_left_out_and_failures_are_lines(
    visits: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    visits.list_offsets.side_effect = ItemErrors(
        "listing offsets", {VISITS_0: NotLeaderOrFollowerError()}, {VISITS_1: ListOffsetsResultInfo(-1, -1, -1)}
    )

    assert main(["offsets", "get", "--time", "1767250800000"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("kavka offsets get: visits-0: ")
    assert visits.list_offsets.call_args[0][0] == {VISITS_0: 1_767_250_800_000, VISITS_1: 1_767_250_800_000}


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--topic", "nothing"], 1),
        (["--topic-partitions", "visits:9"], 1),
        (["--topic-partitions", "visits", "--topic", "visits"], 2),
        (["--time", "soon"], 2),
        (["--partitions", "a"], 2),
    ],
)
def test_offsets_of_nothing_are_said_on_one_line(
    visits: MagicMock, flags: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["offsets", "get", *flags]) == code
    assert capsys.readouterr().err.count("\n") == 1
    visits.list_offsets.assert_not_called()


def test_records_are_deleted_before_an_offset(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.delete_records.return_value = {VISITS_0: 42}

    assert (
        main(["records", "delete", "--topic", "visits", "--partition", "0", "--offset", "42", "--output", "json"]) == 0
    )
    assert_golden("records-delete", capsys.readouterr().out)
    admin.delete_records.assert_called_once_with({VISITS_0: 42})


def test_records_are_deleted_as_a_file_says_and_what_failed_is_a_line(
    admin: MagicMock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(
        '{"partitions": [{"topic": "visits", "partition": 0, "offset": 5},'
        ' {"topic": "visits", "partition": 1, "offset": -1}], "version": 1}'
    )
    admin.delete_records.side_effect = ItemErrors(
        "deleting records", {VISITS_1: UnknownTopicOrPartitionError()}, {VISITS_0: 5}
    )

    assert main(["records", "delete", "--offset-json-file", str(file)]) == 1
    admin.delete_records.assert_called_once_with({VISITS_0: 5, VISITS_1: -1})
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split() == ["visits", "0", "5"]
    assert printed.err.startswith("kavka records delete: visits-1: ")


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ([], 2),
        (["--topic", "visits", "--partition", "0"], 2),
        (["--topic", "visits", "--offset-json-file", "/nowhere"], 2),
        (["--topic", "visits", "--partition", "0", "--offset", "-2"], 2),
        (["--offset-json-file", "/nowhere"], 1),
        (["--offset-json-file", "/dev/null"], 1),
    ],
)
def test_what_to_delete_has_to_be_said_whole(
    admin: MagicMock, flags: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["records", "delete", *flags]) == code
    assert capsys.readouterr().err.count("\n") == 1
    admin.delete_records.assert_not_called()


def test_transactions_are_listed_with_their_coordinators(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.list_transactions.return_value = [
        TransactionListing("billing", 7, TransactionState.ONGOING),
        TransactionListing("archive", 8, TransactionState.EMPTY),
    ]
    transaction = TransactionDescription("billing", TransactionState.ONGOING, 7, 1, 60_000, 5, (VISITS_0,), 3)
    admin.describe_transactions.side_effect = ItemErrors(
        "describing", {"archive": TransactionalIdNotFoundError()}, {"billing": transaction}
    )

    flags = ["--state", "Ongoing", "--producer-id", "7", "--duration-filter", "10", "--transactional-id-pattern", "b.*"]
    assert main(["transactions", "list", *flags, "--output", "json"]) == 0
    assert_golden("transactions-list", capsys.readouterr().out)
    admin.list_transactions.assert_called_once_with(
        states=[TransactionState.ONGOING], producer_ids=[7], longer_than_ms=10, transactional_id_pattern="b.*"
    )


def test_transactions_of_the_brokers_that_answered_are_shown(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [TransactionListing("billing", 7, TransactionState.ONGOING)]
    admin.list_transactions.side_effect = ItemErrors("listing", {2: NotLeaderOrFollowerError()}, {1: listed})
    admin.describe_transactions.side_effect = TransactionalIdNotFoundError()

    assert main(["transactions", "list"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1].split() == ["billing", "-", "7", "Ongoing"]
    assert printed.err.startswith("kavka transactions list: 2: ")


@pytest.mark.usefixtures("stopped_clock")
def test_a_transaction_is_described(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    running = TransactionDescription(
        "billing", TransactionState.ONGOING, 7, 1, 60_000, 1_767_250_800_000, (VISITS_1, VISITS_0), 3
    )
    idle = TransactionDescription("archive", TransactionState.EMPTY, 8, 0, 60_000, -1, (), 3)
    admin.describe_transactions.return_value = {"billing": running, "archive": idle}

    assert main(["transactions", "describe", "billing", "--transactional-id", "archive", "--output", "json"]) == 0
    assert_golden("transactions-describe", capsys.readouterr().out)
    admin.describe_transactions.assert_called_once_with(["billing", "archive"])
    assert main(["transactions", "describe"]) == 2


@pytest.mark.parametrize("words", [["producers", "describe"], ["transactions", "describe-producers"]])
def test_producers_are_described(words: list[str], visits: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    visits.describe_producers.return_value = {VISITS_1: (), VISITS_0: (OPEN, IDLE)}

    assert main([*words, "--topic", "visits", "--broker-id", "1", "--output", "json"]) == 0
    assert_golden("producers-describe", capsys.readouterr().out)
    visits.describe_producers.assert_called_once_with([VISITS_0, VISITS_1], broker_id=1)
    visits.describe_producers.return_value = {VISITS_1: ()}
    assert main([*words, "--topic", "visits", "--partition", "1"]) == 0
    assert visits.describe_producers.call_args == call([VISITS_1], broker_id=None)
    assert main(words) == 2


@pytest.mark.usefixtures("stopped_clock")
def test_what_no_coordinator_knows_hangs(visits: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    forgotten, known, gone = OPEN, OPEN._replace(producer_id=9), OPEN._replace(producer_id=10)
    visits.describe_producers.return_value = {VISITS_0: (forgotten, known, IDLE), VISITS_1: (known, gone)}
    visits.list_transactions.return_value = [
        TransactionListing("billing", 9, TransactionState.ONGOING),
        TransactionListing("archive", 10, TransactionState.ONGOING),
    ]
    transaction = TransactionDescription("billing", TransactionState.ONGOING, 9, 1, 60_000, 5, (VISITS_0,), 3)
    visits.describe_transactions.side_effect = ItemErrors(
        "describing", {"archive": TransactionalIdNotFoundError()}, {"billing": transaction}
    )

    assert main(["transactions", "find-hanging", "--broker-id", "1", "--output", "json"]) == 0
    # Producer 9 has a transaction with visits-0, and none any more with visits-1.
    assert_golden("transactions-find-hanging", capsys.readouterr().out)


def test_what_is_younger_than_the_longest_timeout_is_left_alone(
    visits: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    visits.describe_producers.return_value = {VISITS_0: (OPEN._replace(last_timestamp_ms=2**62),)}

    assert main(["transactions", "find-hanging", "--topic", "visits", "--output", "json"]) == 0
    assert document("transactions-find-hanging", capsys.readouterr().out) == []
    visits.list_transactions.assert_not_called()
    assert main(["transactions", "find-hanging", "--partition", "0"]) == 2


def test_a_hanging_transaction_is_aborted_by_its_start_or_by_its_producer(admin: MagicMock) -> None:
    where = ["transactions", "abort", "--topic", "visits", "--partition", "0"]
    admin.describe_producers.return_value = {VISITS_0: (IDLE, OPEN)}

    assert main([*where, "--start-offset", "12"]) == 0
    # Its coordinator's epoch is not known there: 0 is no later than any.
    admin.abort_transaction.assert_called_once_with(AbortTransactionSpec(VISITS_0, 7, 1, 0))
    assert main([*where, "--start-offset", "13"]) == 1
    assert main([*where, "--producer-id", "8", "--producer-epoch", "2", "--coordinator-epoch", "5"]) == 0
    assert admin.abort_transaction.call_args == call(AbortTransactionSpec(VISITS_0, 8, 2, 5))
    for flags in ([], ["--producer-id", "8"], ["--start-offset", "1", "--producer-id", "8"]):
        assert main([*where, *flags]) == 2
    assert admin.abort_transaction.call_count == 2


def test_a_transaction_is_terminated_by_force(admin: MagicMock) -> None:
    assert main(["transactions", "force-terminate", "--transactional-id", "billing"]) == 0
    admin.force_terminate_transaction.assert_called_once_with("billing")
