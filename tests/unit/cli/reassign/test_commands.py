"""`kavka reassign ...` with a client that asks no broker: what is shown, asked for, refused, and left behind."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client import api_errors
from kavka.client.admin import (
    AlterConfigOpType,
    ClusterDescription,
    ConfigResource,
    ItemErrors,
    LogDirDescription,
    PartitionReassignment,
    ReplicaInfo,
    TopicDescription,
    TopicListing,
    TopicPartition,
    TopicPartitionInfo,
)
from kavka.client.node import Node
from tests.support.json_documents import assert_golden

A0, A1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
ORDERS = {A0: (1, 2), A1: (2, 1)}


def staged(admin: MagicMock, replicas: Mapping[TopicPartition, Sequence[int]], brokers: Iterable[int]) -> None:
    """Have the client see these, each replica of 1000 bytes, and nothing that moves."""
    ids = sorted(brokers)
    nodes = tuple(Node(each, "localhost", 9000 + each) for each in ids)
    admin.describe_cluster.return_value = ClusterDescription("c", nodes[0], nodes, frozenset(), None)
    names = sorted({each.topic for each in replicas})
    admin.list_topics.return_value = {name: TopicListing(name, bytes(16), False) for name in names}
    admin.describe_topics.side_effect = lambda wanted: {name: described(name, replicas) for name in wanted}
    admin.describe_log_dirs.side_effect = lambda wanted: {
        each: {
            "/data": LogDirDescription(None, {p: ReplicaInfo(1000, 0, False) for p in replicas if each in replicas[p]})
        }
        for each in wanted
    }
    admin.list_partition_reassignments.return_value = {}


def described(name: str, replicas: Mapping[TopicPartition, Sequence[int]]) -> TopicDescription:
    rows = tuple(
        TopicPartitionInfo(each.partition, brokers[0], 0, tuple(brokers), tuple(brokers), ())
        for each, brokers in sorted(replicas.items())
        if each.topic == name
    )
    return TopicDescription(name, bytes(16), False, rows, None)


def lines(text: str) -> list[str]:
    """A table's words: how it is aligned is not told here."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    file = tmp_path / "plan.json"
    file.write_text('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,2]}]}')
    return str(file)


def test_a_plan_shows_its_moves_its_bytes_and_what_becomes_of_brokers(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    file = tmp_path / "plan.json"
    assert main(["reassign", "plan", "--drain-brokers", "1", "--out", str(file)]) == 0
    assert lines(capsys.readouterr().out) == [
        "TOPIC PARTITION FORMER-REPLICAS REPLICAS BYTES-TO-MOVE",
        "orders 0 1,2 3,2 1000",
        "orders 1 2,1 2,3 1000",
        "",
        "2 partitions move, 0 partitions change their preferred leader only: 2.0 KiB to copy",
        "",
        "BROKER RACK REPLICAS PREFERRED-LEADER SIZE",
        "1 - 2 -> 0 1 -> 0 2.0 KiB -> 0 B",
        "2 - 2 1 2.0 KiB -> 2.0 KiB",
        "3 - 0 -> 2 0 -> 1 0 B -> 2.0 KiB",
    ]
    assert [row["replicas"] for row in json.loads(file.read_text())["partitions"]] == [[3, 2], [2, 3]]
    assert main(["reassign", "plan", "--drain-brokers", "1", "--out", str(file)]) == 1
    assert capsys.readouterr().err == f"kavka reassign plan: {file} is there already\n"
    assert main(["reassign", "plan", "--drain-brokers", "1", "--output", "json"]) == 0
    assert_golden("reassign-plan", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["plan"], 2, "nothing is asked for; give one or more of --add-brokers, --drain-brokers, --balance"),
        (["plan", "--add-brokers", "x"], 2, "'x' is no list of broker ids, such as 1,2,3"),
        (["plan", "--balance", "--broker-list", "1,1"], 2, "'1,1' names a broker twice"),
        (["plan", "--replication-factor", "0"], 2, "'0' is no whole number from 1 on"),
        (["plan", "--balance", "--topic", "nothing"], 1, "no topic matches nothing"),
        (["plan", "--add-brokers", "9"], 1, "no broker 9; there are 1, 2, 3"),
        (["plan", "--balance", "--topics-to-move-json-file", "/none"], 1, "/none: No such file or directory"),
        (["generate", "--topics-to-move-json-file", "/none"], 2, "arguments are required: --broker-list"),
        (["execute"], 2, "arguments are required: --reassignment-json-file"),
        (["execute", "--reassignment-json-file", "/none"], 1, "/none: No such file or directory"),
        (["execute", "--reassignment-json-file", "/none", "--throttle", "-1"], 2, "--throttle"),
        (["verify", "--reassignment-json-file", "/none"], 1, "/none: No such file or directory"),
        (["cancel", "--reassignment-json-file", "/none"], 1, "/none: No such file or directory"),
    ],
)
def test_what_is_wrong_is_one_line(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    assert main(["reassign", *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"kavka reassign {words[0]}: ")
    assert message in line


def test_throttles_are_set_before_the_moves_and_removed_after_them(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], plan_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    moving = {A0: PartitionReassignment((3, 2, 1), (3,), (1,))}
    # Asked before; then twice while it waits; then for others.
    admin.list_partition_reassignments.side_effect = [{}, moving, {}, {}, {}]
    monkeypatch.setattr("kavka.cli.reassign.following.INTERVAL_S", 0)
    order: list[str] = []
    admin.incremental_alter_configs.side_effect = lambda changes: order.append(
        "removed" if next(iter(changes.values()))[0].operation is AlterConfigOpType.DELETE else "set"
    )

    def begun(_targets: object) -> None:
        order.append("begun")
        staged_now = {**ORDERS, A0: (3, 2)}
        admin.describe_topics.side_effect = lambda wanted: {name: described(name, staged_now) for name in wanted}

    admin.alter_partition_reassignments.side_effect = begun
    assert main(["reassign", "execute", "--reassignment-json-file", plan_file, "--throttle", "500"]) == 0
    assert order == ["set", "set", "begun", "removed", "removed"]
    err = capsys.readouterr().err.splitlines()
    assert err == [
        "1 partition left, 1000 B to copy",
        "all moves are done",
        "throttles are removed from brokers 1,2,3 and topics orders",
    ]
    topic, brokers = [call.args[0] for call in admin.incremental_alter_configs.call_args_list[:2]]
    assert {op.name: op.value for op in topic[ConfigResource.topic("orders")]} == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    assert {each.name: [op.value for op in ops] for each, ops in brokers.items()} == dict.fromkeys("123", ["500"] * 2)


def test_throttles_stay_while_something_else_moves_and_that_is_said(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], plan_file: str
) -> None:
    staged(admin, {**ORDERS, A0: (3, 2)}, (1, 2, 3))
    other = {TopicPartition("visits", 0): PartitionReassignment((1, 2), (2,), ())}
    admin.list_partition_reassignments.side_effect = lambda wanted=None: other if wanted is None else {}
    words = ["reassign", "execute", "--reassignment-json-file", plan_file, "--throttle", "500", "--additional"]
    assert main(words) == 0
    assert capsys.readouterr().err == "throttles stay: 1 other partition is on the move\n"


def test_a_move_that_is_refused_leaves_no_throttle(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], plan_file: str
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    admin.alter_partition_reassignments.side_effect = api_errors.ClusterAuthorizationError()
    assert main(["reassign", "execute", "--reassignment-json-file", plan_file, "--throttle", "500"]) == 4
    last = admin.incremental_alter_configs.call_args_list[-1].args[0]
    assert {op.operation for ops in last.values() for op in ops} == {AlterConfigOpType.DELETE}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kavka reassign execute: ")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), api_errors.KafkaTimeoutError("no answer")])
def test_whoever_is_interrupted_is_told_what_goes_on_and_what_stays_set(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], plan_file: str, error: BaseException
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    admin.list_partition_reassignments.side_effect = [{}, error]
    words = ["reassign", "execute", "--reassignment-json-file", plan_file, "--throttle", "500"]
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            main(words)
    else:
        assert main(words) == 3
    told = capsys.readouterr().err.splitlines()[0]
    assert told.startswith(
        "kavka reassign execute: what has begun goes on and throttles stay set; `kavka reassign verify"
    )
    assert f"`kavka reassign cancel --reassignment-json-file {plan_file}` gives it up" in told


def test_of_several_moves_those_that_are_refused_are_a_line_each(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    rows = [{"topic": "orders", "partition": index, "replicas": [3, 2]} for index in (0, 1)]
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    refused = ItemErrors("reassigning", {A1: api_errors.InvalidReplicaAssignmentError("no")}, {A0: None})
    admin.alter_partition_reassignments.side_effect = refused
    assert main(["reassign", "execute", "--reassignment-json-file", str(file)]) == 1
    assert capsys.readouterr().err == "kavka reassign execute: orders-1: no\n"


def test_verifying_shows_states_and_fails_unless_all_is_done(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], plan_file: str
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    assert main(["reassign", "verify", "--reassignment-json-file", plan_file, "--preserve-throttles"]) == 1
    assert lines(capsys.readouterr().out) == [
        "TOPIC PARTITION BROKER STATE CURRENT TARGET",
        "orders 0 - not as wanted 1,2 3,2",
    ]
    admin.incremental_alter_configs.assert_not_called()
    staged(admin, {**ORDERS, A0: (3, 2)}, (1, 2, 3))
    assert main(["reassign", "verify", "--reassignment-json-file", plan_file, "--output", "json"]) == 0
    printed = capsys.readouterr()
    assert_golden("reassign-verify", printed.out)
    assert printed.err == "throttles are removed from brokers 1,2,3 and topics orders\n"


def test_cancelling_gives_up_what_moves_and_moves_back_what_is_done(
    admin: MagicMock, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    staged(admin, {A0: (3, 2, 1), A1: (3, 2)}, (1, 2, 3))
    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    for file, replicas in ((plan, {0: [3, 2], 1: [3, 2]}), (back, {0: [1, 2], 1: [2, 1]})):
        rows = [{"topic": "orders", "partition": index, "replicas": each} for index, each in replicas.items()]
        file.write_text(json.dumps({"version": 1, "partitions": rows}))
    moving = {A0: PartitionReassignment((3, 2, 1), (3,), (1,))}
    admin.list_partition_reassignments.side_effect = [moving, {}, {}, {}, {}]
    asked: list[dict[TopicPartition, Sequence[int] | None]] = []

    def altered(targets: dict[TopicPartition, Sequence[int] | None]) -> None:
        asked.append(dict(targets))
        staged_now = {A0: (1, 2), A1: (2, 1) if len(asked) == 2 else (3, 2)}
        admin.describe_topics.side_effect = lambda wanted: {name: described(name, staged_now) for name in wanted}

    admin.alter_partition_reassignments.side_effect = altered
    words = ["reassign", "cancel", "--reassignment-json-file", str(plan), "--rollback-json-file", str(back)]
    assert main(words) == 0
    assert asked == [{A0: None}, {A1: (2, 1)}]
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "cancelled: 1 partition, 0 log directory moves",
        "moving back: 1 partition",
        "throttles are removed from brokers 1,2,3 and topics orders",
    ]
    assert printed.out.count("completed") == 2


def test_what_moves_is_listed_with_the_bytes_that_are_left(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    staged(admin, ORDERS, (1, 2, 3))
    admin.list_partition_reassignments.return_value = {A0: PartitionReassignment((3, 2, 1), (3,), (1,))}
    assert main(["reassign", "list"]) == 0
    assert lines(capsys.readouterr().out) == [
        "TOPIC PARTITION REPLICAS ADDING REMOVING BYTES-LEFT",
        "orders 0 3,2,1 3 1 1000",
    ]
    assert main(["reassign", "list", "--output", "json"]) == 0
    assert_golden("reassign-list", capsys.readouterr().out)
