"""Decisions that follow one another."""

from kavka.coordinator.group.shard import in_turn
from kavka.coordinator.group.table import GroupTable
from kavka.coordinator.runtime.result import NOTHING, CoordinatorRecord, Result
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import GroupMetadataKey
from tests.support.offset_stage import FakeGroup, OffsetStage


def tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(GroupMetadataKey(group=group_id), None)


def test_decisions_are_made_one_after_the_other_with_their_records_and_replies() -> None:
    stage = OffsetStage()
    seen: list[int] = []
    said: list[str] = []

    def first() -> Result:
        further = Result([tombstone("b")], [(said.append, "b")])
        return Result([tombstone("a")], [(said.append, "a")], appended=lambda: further)

    def second() -> Result:
        seen.append(len(stage.log))
        return Result([tombstone("c")], [(said.append, "c")])

    stage.run(lambda _: in_turn(first, lambda: NOTHING, second))

    assert [record.key for record in stage.records()] == [GroupMetadataKey(group=each) for each in "abc"]
    assert seen == [2]
    assert said == ["a", "b", "c"]


def test_a_failed_append_does_not_keep_the_next_decision_from_being_made() -> None:
    stage = OffsetStage()
    said: list[str] = []
    stage.fail_next_append(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    stage.run(
        lambda _: in_turn(
            lambda: Result([tombstone("a")], failed=lambda error: Result((), [(said.append, error.code.name)])),
            lambda: Result([tombstone("b")], [(said.append, "b")]),
        )
    )

    assert [record.key for record in stage.records()] == [GroupMetadataKey(group="b")]
    assert said == ["COORDINATOR_NOT_AVAILABLE", "b"]


def test_nothing_after_nothing_is_nothing() -> None:
    assert in_turn(lambda: NOTHING, lambda: NOTHING) is NOTHING


def test_a_table_gives_groups_by_id_and_a_list_of_its_own() -> None:
    table = GroupTable()
    one, other = FakeGroup("a"), FakeGroup("a")
    table.put(one)
    table.put(FakeGroup("b"))
    table.put(other)

    for group in table.all():
        table.remove(group.group_id if group.group_id == "b" else "nobody")

    assert table.get("a") is other
    assert table.get("b") is None
    assert len(table) == 1
