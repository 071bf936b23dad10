"""OffsetCommit and OffsetFetch: what is stored, what is refused, and that memory is the log."""

import pytest

from kavka.coordinator.group.group import GroupType
from kavka.coordinator.group.offsets.commit import COMMITS
from kavka.protocol.errors import ErrorCode
from kavka.protocol.internal.group_records import OffsetCommitKey, OffsetCommitValue
from tests.support.offset_stage import GROUP, TOPIC, FakeGroup, OffsetStage, codes


def test_a_commit_is_fetched_with_its_epoch_and_metadata() -> None:
    stage = OffsetStage()

    answer = stage.put_offsets({(TOPIC, 3): 42}, metadata="here", epoch=7).answer

    assert codes(answer) == [ErrorCode.NONE]
    (topic,) = stage.ask_offsets([(TOPIC, 3)]).answer.topics
    (part,) = topic.partitions
    assert (part.committed_offset, part.committed_leader_epoch, part.metadata, part.error_code) == (42, 7, "here", 0)


def test_a_commit_is_written_as_value_v3_with_the_time_of_the_commit() -> None:
    stage = OffsetStage()

    stage.put_offsets({(TOPIC, 3): 42}, epoch=7)

    (record,) = stage.records()
    assert record.key == OffsetCommitKey(group=GROUP, topic=TOPIC, partition=3)
    assert record.value == OffsetCommitValue(offset=42, leader_epoch=7, metadata="", commit_timestamp=stage.time_ms)
    assert record.value_version == 3


def test_what_was_never_committed_is_minus_one_without_an_error() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 3): 42})

    known_group = stage.ask_offsets([(TOPIC, 4)]).answer
    no_group = stage.ask_offsets([(TOPIC, 3)], "nobody").answer

    for answer in (known_group, no_group):
        (part,) = answer.topics[0].partitions
        assert (part.committed_offset, part.committed_leader_epoch, part.metadata, part.error_code) == (-1, -1, "", 0)
    assert stage.ask_offsets(None, "nobody").answer.topics == []


def test_a_commit_without_generation_makes_an_empty_group_of_no_protocol_type() -> None:
    stage = OffsetStage()

    stage.put_offsets({(TOPIC, 0): 1})

    group = stage.shard.groups.get(GROUP)
    assert group is not None
    assert (group.type, group.state_name, group.protocol_type) == (GroupType.CLASSIC, "Empty", "")


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_commit_of_a_generation_of_no_group_is_refused(version: int, code: ErrorCode) -> None:
    stage = OffsetStage()

    assert stage.put_offsets({(TOPIC, 0): 1}, generation=0, member="m", version=version).error is code
    assert stage.shard.groups.get(GROUP) is None
    assert stage.log == []


def test_the_group_decides_who_commits_and_is_told_everything() -> None:
    stage = OffsetStage()
    group = FakeGroup(refuse=ErrorCode.UNKNOWN_MEMBER_ID)
    stage.shard.groups.put(group)

    asked = stage.put_offsets({(TOPIC, 0): 1}, member="m", generation=4, group_instance_id="i", version=9)

    assert asked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.asked == [("commit", "m", "i", 4, False, 9)]
    assert stage.log == []


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.UNSUPPORTED_VERSION), (9, ErrorCode.STALE_MEMBER_EPOCH)])
def test_old_versions_do_not_know_stale_member_epochs(version: int, code: ErrorCode) -> None:
    stage = OffsetStage()
    stage.shard.groups.put(FakeGroup(refuse=ErrorCode.STALE_MEMBER_EPOCH))

    assert stage.put_offsets({(TOPIC, 0): 1}, member="m", generation=4, version=version).error is code


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        ("x" * 10, ErrorCode.NONE),
        ("x" * 11, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\u00e9" * 10, ErrorCode.NONE),
        ("\U0001f426" * 5, ErrorCode.NONE),
        ("\U0001f426" * 6, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_limited_in_utf16_units(metadata: str, code: ErrorCode) -> None:
    stage = OffsetStage({"offset.metadata.max.bytes": "10"})

    assert codes(stage.put_offsets({(TOPIC, 0): 1}, metadata=metadata).answer) == [code]
    assert stage.offsets() == ({(TOPIC, 0): 1} if code is ErrorCode.NONE else {})


def test_one_partition_with_too_much_metadata_does_not_hold_up_the_others() -> None:
    stage = OffsetStage({"offset.metadata.max.bytes": "10"})

    answer = stage.put_offsets({(TOPIC, 0): 1, (TOPIC, 1): 2}, metadata={0: "x" * 11, 1: "x"}).answer

    assert codes(answer) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert stage.offsets() == {(TOPIC, 1): 2}


def test_a_retention_time_becomes_an_expire_timestamp_in_value_v1() -> None:
    stage = OffsetStage()

    stage.put_offsets({(TOPIC, 0): 1}, epoch=5, retention_time_ms=1000, version=2)

    (record,) = stage.records()
    assert record.value_version == 1
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp == stage.time_ms + 1000


def test_version_1_brings_commit_timestamps_of_its_own() -> None:
    stage = OffsetStage()

    stage.put_offsets({(TOPIC, 0): 1}, commit_timestamp=123, version=1)

    committed = stage.shard.offsets.get(GROUP, TOPIC, 0)
    assert committed is not None
    assert committed.commit_timestamp_ms == 123


def test_negative_offsets_are_stored_as_kafka_stores_them() -> None:
    stage = OffsetStage()

    assert codes(stage.put_offsets({(TOPIC, 0): -5}).answer) == [ErrorCode.NONE]
    assert stage.offsets() == {(TOPIC, 0): -5}


def test_a_failed_append_leaves_everything_as_it_was() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1})
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)

    assert stage.put_offsets({(TOPIC, 0): 2, (TOPIC, 1): 2}).error is ErrorCode.NOT_COORDINATOR
    stage.fail_next_append(ErrorCode.NOT_COORDINATOR)
    assert stage.put_offsets({(TOPIC, 0): 2}, "another").error is ErrorCode.NOT_COORDINATOR

    assert stage.offsets() == {(TOPIC, 0): 1}
    assert stage.shard.groups.get("another") is None


def test_offsets_survive_a_reload() -> None:
    stage = OffsetStage()
    stage.put_offsets({(TOPIC, 0): 1, (TOPIC, 1): 2}, metadata="m\u00e9")
    stage.put_offsets({(TOPIC, 0): 3})

    stage.reload()

    assert stage.offsets() == {(TOPIC, 0): 3, (TOPIC, 1): 2}
    committed = stage.shard.offsets.get(GROUP, TOPIC, 1)
    assert committed is not None
    assert committed.metadata == "m\u00e9"


def test_a_fetch_is_answered_when_what_it_read_is_committed() -> None:
    stage = OffsetStage()
    stage.holds_replies = True

    commit, fetch = stage.put_offsets({(TOPIC, 0): 1}), stage.ask_offsets([(TOPIC, 0)])
    assert commit.waits
    assert fetch.waits
    stage.holds_replies = False
    stage.commit()

    assert fetch.answer.topics[0].partitions[0].committed_offset == 1


def test_the_group_decides_who_fetches() -> None:
    stage = OffsetStage()
    group = FakeGroup(refuse=ErrorCode.STALE_MEMBER_EPOCH)
    stage.shard.groups.put(group)

    asked = stage.ask_offsets([(TOPIC, 0)], member="m", member_epoch=3)

    assert asked.error is ErrorCode.STALE_MEMBER_EPOCH
    assert group.asked == [("fetch", "m", 3)]


def test_each_offset_is_counted() -> None:
    stage = OffsetStage()

    stage.put_offsets({(TOPIC, 0): 1, (TOPIC, 1): 2})

    assert stage.counts[COMMITS] == 2
    assert stage.shard.offsets.count == 2


def test_a_retention_time_of_for_ever_is_stored_as_the_last_moment_that_there_is() -> None:
    stage = OffsetStage()

    answer = stage.put_offsets({(TOPIC, 0): 1}, retention_time_ms=(1 << 63) - 1, version=2).answer

    assert codes(answer) == [ErrorCode.NONE]
    (record,) = stage.records()
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp == (1 << 63) - 1
