"""`kavka groups list` and `describe`: what people and programs see of groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from kavka.cli.groups.unread import Unread, UnreadTimestamps
from kavka.cli.main import main
from kavka.client.admin import GroupListing, GroupState, GroupType, ItemErrors, SharePartitionOffsetInfo
from kavka.client.admin.types.groups import ShareGroupDescription
from kavka.client.api_errors import GroupAuthorizationError, GroupIdNotFoundError, UnknownTopicOrPartitionError
from tests.support.described_groups import COORDINATOR, HISTORY, NOW_MS, P0, P1, P2, group_of, info, member, stored
from tests.support.json_documents import assert_golden, document

Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Unread]:
    """What was looked for; the records of orders-1 are 90 seconds old, of others nothing is found."""
    asked: list[Unread] = []

    def look(_self: UnreadTimestamps, unread: Iterable[Unread]) -> Mapping[Unread, int]:
        asked.extend(unread)
        return {each: NOW_MS - 90_000 for each in asked if each.partition == P1}

    monkeypatch.setattr(UnreadTimestamps, "look", look)
    monkeypatch.setattr("time.time_ns", lambda: NOW_MS * 1_000_000)
    return asked


@pytest.fixture
def billing(admin: MagicMock) -> MagicMock:
    """A group of two: it is at the end of orders-0, behind in orders-1, and has committed nothing of orders-2."""
    described = group_of("billing", member("a", P0, P2), member("b", P1, instance_id="worker-1"), history=HISTORY)
    admin.describe_consumer_groups.return_value = {"billing": described}
    admin.list_group_offsets.return_value = {"billing": stored(p0=5, p1=3)}
    admin.list_offsets.return_value = {P0: info(5), P1: info(10), P2: info(7)}
    return admin


LISTED = [
    GroupListing("shipping", GroupType.CONSUMER, "consumer", GroupState.STABLE),
    GroupListing("connect", GroupType.CLASSIC, "connect", GroupState.EMPTY),
]


def test_groups_are_listed_in_order_with_types_and_states(admin: MagicMock, capsys: Output) -> None:
    admin.list_groups.return_value = LISTED
    assert main(["groups", "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["GROUP", "TYPE", "PROTOCOL", "STATE"],
        ["connect", "Classic", "connect", "Empty"],
        ["shipping", "Consumer", "consumer", "Stable"],
    ]
    assert main(["groups", "list", "--ids"]) == 0
    assert capsys.readouterr().out == "connect\nshipping\n"
    assert main(["groups", "list", "--output", "json"]) == 0
    assert_golden("groups-list", capsys.readouterr().out)


def test_states_and_types_are_kafkas_in_any_case(admin: MagicMock, capsys: Output) -> None:
    admin.list_groups.return_value = []
    assert main(["groups", "list", "--state", "stable, EMPTY", "--type", "Consumer"]) == 0
    admin.list_groups.assert_called_once_with(states=[GroupState.STABLE, GroupState.EMPTY], types=[GroupType.CONSUMER])
    capsys.readouterr()
    assert main(["groups", "list", "--state", "sleepy"]) == 2
    assert capsys.readouterr().err == (
        "kavka groups list: --state: there is no 'sleepy'; there are PreparingRebalance, CompletingRebalance, Stable, "
        "Dead, Empty, Assigning, Reconciling, NotReady\n"
    )


def test_groups_of_brokers_that_answer_are_listed_though_others_do_not(admin: MagicMock, capsys: Output) -> None:
    failed = ItemErrors("listing groups", {2: GroupAuthorizationError("no")}, {1: LISTED})
    admin.list_groups.side_effect = failed
    assert main(["groups", "list", "--ids"]) == 4
    printed = capsys.readouterr()
    assert printed.out == "connect\nshipping\n"
    assert printed.err.startswith("kavka groups list: 2: no; ")


def test_lag_is_told_in_records_and_in_seconds(billing: MagicMock, capsys: Output, looks: list[Unread]) -> None:
    assert main(["groups", "describe", "--group", "billing"]) == 0
    head, empty, titles, *rows = capsys.readouterr().out.splitlines()
    assert head == (
        "billing: Stable, 2 members; last rebalance 2025-11-24T15:58:30.000Z (90 s ago): member b\\x1b is new"
    )
    assert empty == ""
    assert titles.split()[3:7] == ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "LAG-SECONDS"]
    assert [row.split() for row in rows] == [
        ["billing", "orders", "0", "5", "5", "0", "0.0", "a", "/10.0.0.1", "client-a"],
        ["billing", "orders", "1", "3", "10", "7", "90.0", "b", "/10.0.0.1", "client-b"],
        ["billing", "orders", "2", "-", "7", "-", "-", "a", "/10.0.0.1", "client-a"],
    ]
    assert looks == [Unread(P1, 3, 10)], "only what lies before the group is read"
    billing.describe_consumer_groups.assert_called_once_with(["billing"], include_history=True)


@pytest.mark.parametrize("view", ["offsets", "members", "state", "history"])
def test_programs_get_a_document_of_each_view(billing: MagicMock, capsys: Output, view: str) -> None:
    assert main(["groups", "describe", "--group", "billing", f"--{view}", "--output", "json"]) == 0
    assert_golden(f"groups-{view}", capsys.readouterr().out)


def test_members_and_state_in_few_and_in_many_words(billing: MagicMock, capsys: Output) -> None:
    assert main(["groups", "describe", "--group", "billing", "--members", "--verbose"]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row == ["billing", "b", "worker-1", "/10.0.0.1", "client-b", "1", "-", "orders:1", "-", "-"]
    assert main(["groups", "describe", "--group", "billing", "--state"]) == 0
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[:7] == ["billing", "Classic", "broker-3:9092", "3", "range", "Stable", "2"]


def test_a_group_without_members_and_one_whose_topic_is_gone(admin: MagicMock, capsys: Output) -> None:
    admin.describe_consumer_groups.return_value = {"idle": group_of("idle")}
    admin.list_group_offsets.return_value = {"idle": stored(p0=5, p1=3)}
    gone = UnknownTopicOrPartitionError("gone")
    admin.list_offsets.side_effect = ItemErrors("looking offsets up", {P1: gone}, {P0: info(8)})
    assert main(["groups", "describe", "--group", "idle"]) == 0
    head, _, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "idle: Empty, no active members"
    assert [row.split()[3:7] for row in rows] == [["5", "8", "3", "-"], ["3", "-", "-", "-"]]


def test_a_share_group_is_found_by_its_type(admin: MagicMock, capsys: Output) -> None:
    admin.describe_consumer_groups.side_effect = GroupIdNotFoundError("not a consumer group")
    admin.list_groups.return_value = [GroupListing("shared", GroupType.SHARE, "share", GroupState.EMPTY)]
    share = ShareGroupDescription("shared", GroupState.EMPTY, (), COORDINATOR, 4, 4, None)
    admin.describe_share_groups.return_value = {"shared": share}
    admin.list_share_group_offsets.return_value = {"shared": {P1: SharePartitionOffsetInfo(3, 0, 5)}}
    admin.list_offsets.return_value = {P1: info(10)}
    assert main(["groups", "describe", "--group", "shared", "--output", "json"]) == 0
    (row,) = document("groups-offsets", capsys.readouterr().out)
    assert (row["current_offset"], row["log_end_offset"], row["lag"], row["lag_seconds"]) == (3, 10, 5, 90.0)


def test_what_can_be_described_is_shown_and_the_rest_is_a_line_each(billing: MagicMock, capsys: Output) -> None:
    missing, hidden = GroupIdNotFoundError("there is no such group"), GroupAuthorizationError("not allowed")
    described = billing.describe_consumer_groups.return_value
    failed = ItemErrors("describing groups", {"none": missing, "secret": hidden}, described)
    billing.describe_consumer_groups.side_effect = failed
    billing.list_groups.return_value = []
    words = ["groups", "describe", "--group", "billing", "--group", "none", "--group", "secret", "--output", "json"]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert {row["group"] for row in json.loads(printed.out)} == {"billing"}
    assert [line.split(": ")[1] for line in printed.err.splitlines()] == ["none", "secret"]


def test_all_groups_are_described_at_once(billing: MagicMock, capsys: Output) -> None:
    billing.list_groups.return_value = [GroupListing("billing", GroupType.CLASSIC, "consumer", GroupState.STABLE)]
    assert main(["groups", "describe", "--all-groups", "--state"]) == 0
    billing.describe_consumer_groups.assert_called_once_with(["billing"], include_history=True)
    assert "billing" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["describe"],
        ["describe", "--group", "g", "--all-groups"],
        ["describe", "--group", "g", "--state", "--members"],
        ["list", "--output", "yaml"],
        ["describe", "--group", "g", "--command-config", str(Path("/nonexistent/file"))],
    ],
)
def test_what_makes_no_sense_is_one_line(admin: MagicMock, capsys: Output, words: list[str]) -> None:
    code: Any = main(["groups", *words])
    printed = capsys.readouterr()
    assert code in (1, 2)
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""
