"""ListGroups and DescribeGroups over groups of either kind."""

import pytest

from kavka.coordinator.group.group import GroupType
from kavka.protocol.errors import ErrorCode
from tests.support.offset_stage import GROUP, TOPIC, FakeGroup, OffsetStage


def stage_of_three() -> OffsetStage:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})
    stage.shard.groups.put(FakeGroup("modern"))
    stage.shard.groups.put(FakeGroup("connect", kind=GroupType.CLASSIC, protocol_type="connect", state="Stable"))
    return stage


@pytest.mark.parametrize(
    ("states", "types", "listed"),
    [
        ([], [], [GROUP, "modern", "connect"]),
        (["Stable"], [], ["modern", "connect"]),
        ([" sTABLE "], ["CLASSIC"], ["connect"]),
        (["Empty", "Dead"], [], [GROUP]),
        ([], ["consumer"], ["modern"]),
        ([], ["consumer", "classic"], [GROUP, "modern", "connect"]),
        (["nonsense"], [], []),
        ([], ["share"], []),
    ],
)
def test_filters_choose_by_state_and_type_whatever_the_case(
    states: list[str], types: list[str], listed: list[str]
) -> None:
    assert stage_of_three().list_groups(states, types) == listed


def test_a_listed_group_says_its_protocol_state_and_type() -> None:
    stage = stage_of_three()

    groups = stage.ask(lambda shard, reply: shard.list_groups((), (), reply)).answer

    assert [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups] == [
        (GROUP, "", "Empty", "classic"),
        ("modern", "consumer", "Stable", "consumer"),
        ("connect", "connect", "Stable", "classic"),
    ]


def test_a_classic_group_is_described() -> None:
    stage = stage_of_three()

    (described,) = stage.ask(lambda shard, reply: shard.describe_groups([GROUP], 5, reply)).answer

    assert (described.error_code, described.group_id, described.group_state) == (0, GROUP, "Empty")
    assert (described.protocol_type, described.protocol_data, described.members) == ("", "", [])


@pytest.mark.parametrize(
    ("version", "code", "messages"),
    [
        (5, ErrorCode.NONE, [None, None]),
        (
            6,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ["Group nobody not found.", "Group modern is not a classic group."],
        ),
    ],
)
def test_what_is_no_classic_group_is_dead(version: int, code: ErrorCode, messages: list[str | None]) -> None:
    stage = stage_of_three()

    described = stage.ask(lambda shard, reply: shard.describe_groups(["nobody", "modern"], version, reply)).answer

    assert [each.group_state for each in described] == ["Dead", "Dead"]
    assert [each.error_code for each in described] == [code, code]
    assert [each.error_message for each in described] == messages
