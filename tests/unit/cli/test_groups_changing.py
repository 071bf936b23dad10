"""`kavka groups reset-offsets`, `delete`, `delete-offsets`, `remove-members`, `validate-regex`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, call

import pytest

from kavka.cli.groups.moments import ago_text, datetime_ms, duration_ms, moment_text
from kavka.cli.main import main
from kavka.client.admin import (
    GroupListing,
    GroupState,
    GroupType,
    ItemErrors,
    MemberToRemove,
    OffsetSpec,
    SharePartitionOffsetInfo,
    TopicDescription,
    TopicPartition,
    TopicPartitionInfo,
)
from kavka.client.admin.types.groups import ShareGroupDescription
from kavka.client.api_errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    NonEmptyGroupError,
    UnknownMemberIdError,
)
from tests.support.described_groups import COORDINATOR, NOW_MS, P0, P1, P2, group_of, info, member, stored
from tests.support.json_documents import assert_golden, document

Output = pytest.CaptureFixture[str]
FIRST, LAST = 2, 20
HOUR_MS = 3_600_000
RECORD_MS = NOW_MS - HOUR_MS
"""When the record at offset 10 was made, the last one but in orders-1, which has none since."""


@pytest.fixture
def orders(admin: MagicMock, monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    """A topic of three partitions, and a group that has committed 5 of the first and 19 of the second."""
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    partitions = tuple(TopicPartitionInfo(number, 1, 0, (1,), (1,), ()) for number in range(3))
    admin.describe_topics.return_value = {"orders": TopicDescription("orders", bytes(16), False, partitions, None)}
    admin.describe_consumer_groups.return_value = {"billing": group_of("billing")}
    admin.list_group_offsets.return_value = {"billing": stored(p0=5, p1=19)}

    def list_offsets(specs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        def offset(partition: TopicPartition, spec: int) -> int:
            if spec == OffsetSpec.EARLIEST:
                return FIRST
            if spec == OffsetSpec.LATEST:
                return LAST
            return 10 if partition != P1 and spec <= RECORD_MS else -1

        return {partition: info(offset(partition, spec)) for partition, spec in specs.items()}

    admin.list_offsets.side_effect = list_offsets
    return admin


def planned(capsys: Output, *words: str) -> list[int]:
    """The new offsets that the command shows."""
    assert main(["groups", "reset-offsets", "--group", "billing", "--dry-run", "--output", "json", *words]) == 0
    return [row["new_offset"] for row in document("groups-reset-offsets", capsys.readouterr().out)]


@pytest.mark.parametrize(
    ("scenario", "news"),
    [
        (["--to-earliest"], [2, 2, 2]),
        (["--to-latest"], [20, 20, 20]),
        (["--to-current"], [5, 19, 20]),
        (["--to-offset", "7"], [7, 7, 7]),
        (["--to-offset", "0"], [2, 2, 2]),
        (["--to-offset", "99"], [20, 20, 20]),
        (["--to-datetime", moment_text(RECORD_MS)], [10, 20, 10]),
        (["--to-datetime", "2050-01-01T00:00:00.000"], [20, 20, 20]),
        (["--by-duration", "PT1H"], [10, 20, 10]),
        (["--by-duration", "PT59M"], [20, 20, 20]),
    ],
)
def test_the_scenarios_are_kafkas(orders: MagicMock, capsys: Output, scenario: list[str], news: list[int]) -> None:
    assert planned(capsys, "--topic", "orders", *scenario) == news
    orders.alter_group_offsets.assert_not_called()


@pytest.mark.parametrize(("by", "news"), [("2", [7, 20]), ("-4", [2, 15]), ("-100", [2, 2])])
def test_offsets_are_shifted_within_what_there_is(orders: MagicMock, capsys: Output, by: str, news: list[int]) -> None:
    assert planned(capsys, "--all-topics", "--shift-by", by) == news


def test_what_has_no_offset_cannot_be_shifted(orders: MagicMock, capsys: Output) -> None:
    assert main(["groups", "reset-offsets", "--group", "billing", "--topic", "orders:2", "--shift-by", "1"]) == 1
    assert "billing has no offset of orders-2" in capsys.readouterr().err


def test_nothing_is_changed_until_told_to(orders: MagicMock, capsys: Output) -> None:
    words = ["groups", "reset-offsets", "--group", "billing", "--topic", "orders:0,1", "--to-earliest"]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert printed.err == "kavka groups reset-offsets: nothing was changed; --execute does it\n"
    assert [line.split() for line in printed.out.splitlines()[1:]] == [
        ["billing", "orders", "0", "5", "2"],
        ["billing", "orders", "1", "19", "2"],
    ]
    orders.alter_group_offsets.assert_not_called()

    assert main([*words, "--execute", "--output", "json"]) == 0
    assert_golden("groups-reset-offsets", capsys.readouterr().out)
    orders.alter_group_offsets.assert_called_once_with("billing", {P0: 2, P1: 2})


def test_a_group_with_members_is_left_alone_and_one_that_is_not_there_is_made(
    orders: MagicMock, capsys: Output
) -> None:
    busy = {"busy": group_of("busy", member("a", P0))}
    orders.describe_consumer_groups.side_effect = ItemErrors("describing", {"new": GroupIdNotFoundError()}, busy)
    orders.list_groups.return_value = []
    words = ["groups", "reset-offsets", "--group", "busy", "--group", "new", "--topic", "orders:0", "--to-latest"]
    assert main([*words, "--execute"]) == 1
    assert capsys.readouterr().err == (
        "kavka groups reset-offsets: busy is Stable: offsets are reset of groups without members; stop them\n"
    )
    orders.alter_group_offsets.assert_called_once_with("new", {P0: LAST})


def test_what_was_refused_is_not_shown_as_done(orders: MagicMock, capsys: Output) -> None:
    failed = ItemErrors("committing", {P0: UnknownMemberIdError("it has members now")}, {P1: None})
    orders.alter_group_offsets.side_effect = failed
    words = ["groups", "reset-offsets", "--group", "billing", "--topic", "orders:0,1", "--to-earliest", "--execute"]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert [line.split()[2] for line in printed.out.splitlines()[1:]] == ["1"]
    assert printed.err == "kavka groups reset-offsets: billing, orders-0: it has members now\n"


def test_a_share_group_starts_where_told(orders: MagicMock, capsys: Output) -> None:
    orders.describe_consumer_groups.side_effect = GroupIdNotFoundError()
    orders.list_groups.return_value = [GroupListing("shared", GroupType.SHARE, "share", GroupState.EMPTY)]
    share = ShareGroupDescription("shared", GroupState.EMPTY, (), COORDINATOR, 4, 4, None)
    orders.describe_share_groups.return_value = {"shared": share}
    orders.list_share_group_offsets.return_value = {"shared": {P1: SharePartitionOffsetInfo(3, 0, 5)}}
    assert main(["groups", "reset-offsets", "--group", "shared", "--all-topics", "--to-latest", "--execute"]) == 0
    orders.alter_share_group_offsets.assert_called_once_with("shared", {P1: LAST})
    assert capsys.readouterr().err == ""


def test_a_plan_is_written_and_read_again(orders: MagicMock, capsys: Output, tmp_path: Path) -> None:
    words = ["groups", "reset-offsets", "--group", "billing"]
    assert main([*words, "--topic", "orders:0,1", "--to-offset", "7", "--export", "--dry-run"]) == 0
    exported = capsys.readouterr().out
    assert exported == "orders,0,7\norders,1,7\n"

    plan = tmp_path / "plan.csv"
    plan.write_text(exported + "\norders,2,99\n")
    assert main([*words, "--from-file", str(plan), "--execute"]) == 0
    orders.alter_group_offsets.assert_called_once_with("billing", {P0: 7, P1: 7, P2: LAST})
    assert "orders-2 has no offset 99: 20 is the nearest one" in capsys.readouterr().err


def test_a_plan_of_several_groups_names_them(orders: MagicMock, capsys: Output, tmp_path: Path) -> None:
    groups = {"billing": group_of("billing"), "a,b": group_of("a,b")}
    orders.describe_consumer_groups.return_value = groups
    orders.list_group_offsets.side_effect = lambda asked: {each: stored(p0=5) for each in asked}
    words = ["groups", "reset-offsets", "--group", "billing", "--group", "a,b"]
    assert main([*words, "--all-topics", "--to-earliest", "--export", "--dry-run"]) == 0
    exported = capsys.readouterr().out
    assert exported == 'billing,orders,0,2\n"a,b",orders,0,2\n'

    plan = tmp_path / "plan.csv"
    plan.write_text(exported + "others,orders,0,2\n")
    assert main([*words, "--from-file", str(plan), "--execute"]) == 0
    assert orders.alter_group_offsets.mock_calls == [call("billing", {P0: 2}), call("a,b", {P0: 2})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("orders,0", "line 1: 'orders,0' is no offset"),
        ("orders,0,1\norders,x,1", "line 2: 'orders,x,1' is no offset"),
        ("orders,0,-1", "line 1: 'orders,0,-1' is no offset"),
        ("others,orders,0,1", "it has no offset of billing"),
        ("", "it has no offset of billing"),
        ("a,b,orders,0,1", "line 1: 'a,b,orders,0,1' is no offset"),
        ("\x00\udcff", "it is not text in UTF-8"),
        (None, "No such file or directory"),
    ],
)
def test_a_plan_that_makes_no_sense_is_one_line(
    orders: MagicMock, capsys: Output, tmp_path: Path, text: str | None, said: str
) -> None:
    plan = tmp_path / "plan.csv"
    if text is not None:
        plan.write_bytes(text.encode(errors="surrogateescape"))
    assert main(["groups", "reset-offsets", "--group", "billing", "--from-file", str(plan), "--execute"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    orders.alter_group_offsets.assert_not_called()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--group", "g", "--to-earliest"], 2),
        (["--group", "g", "--topic", "orders"], 2),
        (["--group", "g", "--topic", "orders", "--to-earliest", "--to-latest"], 2),
        (["--group", "g", "--topic", "orders", "--to-datetime", "yesterday"], 2),
        (["--group", "g", "--topic", "orders", "--by-duration", "1h"], 2),
        (["--group", "g", "--topic", "orders", "--to-earliest", "--execute", "--dry-run"], 2),
        (["--group", "g", "--topic", "orders:x", "--to-earliest"], 2),
        (["--group", "billing", "--topic", "orders:3", "--to-earliest"], 1),
    ],
)
def test_a_wrong_reset_is_one_line(orders: MagicMock, capsys: Output, words: list[str], code: int) -> None:
    assert main(["groups", "reset-offsets", *words]) == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_times_are_read_as_kafkas_tool_reads_them() -> None:
    assert datetime_ms("1970-01-01T00:00:01.500") == datetime_ms("1970-01-01T01:00:01.500+01:00") == 1_500
    assert duration_ms("P1DT2H3M4.5S") == 93_784_500
    assert duration_ms("-PT1S") == -1_000
    for text in ("", "P", "PT", "P1H", "1D", "P1DT", "PT1.S"):
        with pytest.raises(ValueError, match="duration"):
            duration_ms(text)
    assert moment_text(1 << 62) == str(1 << 62)
    assert [ago_text(0, ms) for ms in (-5, 119_000, 120_000, 3 * HOUR_MS, 50 * HOUR_MS)] == [
        "0 s ago",
        "119 s ago",
        "2 min ago",
        "3 h ago",
        "2 d ago",
    ]


def test_groups_are_deleted_and_those_that_are_not_have_a_line(admin: MagicMock, capsys: Output) -> None:
    failed = ItemErrors("deleting", {"busy": NonEmptyGroupError("it has members")}, {"idle": None})
    admin.delete_groups.side_effect = failed
    assert main(["groups", "delete", "--group", "idle", "--group", "busy"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "deleted idle\n"
    assert printed.err == "kavka groups delete: busy: it has members\n"
    admin.delete_groups.side_effect = None
    admin.delete_groups.return_value = {"idle": None}
    assert main(["groups", "delete", "--group", "idle", "--output", "json"]) == 0
    assert_golden("groups-delete", capsys.readouterr().out)


def test_offsets_are_deleted_by_partition(orders: MagicMock, capsys: Output) -> None:
    orders.delete_group_offsets.return_value = {P0: None, P2: None}
    words = ["groups", "delete-offsets", "--group", "billing", "--topic", "orders:0,2"]
    assert main([*words, "--output", "json"]) == 0
    assert_golden("groups-delete-offsets", capsys.readouterr().out)
    orders.delete_group_offsets.assert_called_once_with("billing", [P0, P2])
    failed = ItemErrors("deleting", {P2: GroupSubscribedToTopicError("it is read now")}, {P0: None})
    orders.delete_group_offsets.side_effect = failed
    assert main(words) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (
        "deleted the offset of orders-0\n",
        "kavka groups delete-offsets: orders-2: it is read now\n",
    )


def test_members_are_removed_by_either_name_or_all_of_them(admin: MagicMock, capsys: Output) -> None:
    named = [MemberToRemove(member_id="m"), MemberToRemove(group_instance_id="worker-1")]
    admin.remove_group_members.return_value = dict.fromkeys(named)
    words = ["groups", "remove-members", "--group", "billing"]
    assert main([*words, "--member-id", "m", "--group-instance-id", "worker-1", "--output", "json"]) == 0
    assert_golden("groups-remove-members", capsys.readouterr().out)
    assert admin.remove_group_members.mock_calls[0].args == ("billing", named)
    assert main([*words, "--all-members"]) == 0
    assert capsys.readouterr().out == "removed m\nremoved worker-1\n"
    assert admin.remove_group_members.mock_calls[1].args == ("billing",)
    admin.remove_group_members.side_effect = UnknownMemberIdError("there is none")
    assert main([*words, "--member-id", "m"]) == 1
    assert capsys.readouterr().err == "kavka groups remove-members: m: there is none\n"
    assert main(words) == main([*words, "--all-members", "--member-id", "m"]) == 2


def test_a_regular_expression_is_tried_here(capsys: Output) -> None:
    assert main(["groups", "validate-regex", r"orders\..*"]) == 0
    assert capsys.readouterr().out == "orders\\..* is a regular expression of RE2\n"
    assert main(["groups", "validate-regex", "a["]) == 1
    assert main(["groups", "validate-regex", "(?=a)"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
