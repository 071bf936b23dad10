"""Committed offsets outlive the broker, and go with their topic."""

from pathlib import Path

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.integration.oracle.answers.stage import Stage
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import Wire

COMMIT, FETCH = 8, 8
PATIENCE_S = 120.0
GROUPS = tuple(f"group-{number}" for number in range(12))


def commit(client: Wire, group: str, topic: str, offset: int) -> ErrorCode:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=group)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[part])]
    answer = client.ask(OffsetCommitRequest(group_id=group, topics=topics), COMMIT)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def commit_when_loaded(client: Wire, group: str, topic: str, offset: int) -> None:
    wait_until(lambda: commit(client, group, topic, offset) is ErrorCode.NONE, PATIENCE_S, f"{group} is not served")


def offsets(client: Wire) -> dict[tuple[str, str], tuple[int, str]] | None:
    """(group, topic) -> offset and metadata; None while a shard loads."""
    asked = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in GROUPS]
    answer = client.ask(OffsetFetchRequest(groups=asked), FETCH)
    if any(group.error_code for group in answer.groups):
        return None
    return {
        (group.group_id, topic.name): (topic.partitions[0].committed_offset, topic.partitions[0].metadata)
        for group in answer.groups
        for topic in group.topics
    }


def test_offsets_outlive_a_kill_and_go_with_their_topic(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path) as broker:
        with Wire(broker.host, broker.port) as client:
            stage = Stage(client, COMMIT, "stays")
            kept, lost = stage.topic("kept"), stage.topic("lost")
            # The topic of the offsets is created with the first coordinator that is looked for.
            client.ask(FindCoordinatorRequest(key=GROUPS[0]), 3)
            for number, group in enumerate(GROUPS):
                commit_when_loaded(client, group, kept, 1)
                commit_when_loaded(client, group, kept, 100 + number)
                commit_when_loaded(client, group, lost, 7)
        broker.kill()
        broker.start()
        expected = {(group, kept): (100 + number, group) for number, group in enumerate(GROUPS)}

        with Wire(broker.host, broker.port) as client:
            found = wait_until(lambda: offsets(client), PATIENCE_S, "the offsets are not loaded")
            assert found == expected | {(group, lost): (7, group) for group in GROUPS}

            client.ask(DeleteTopicsRequest(topic_names=[lost], timeout_ms=60_000), 4)
            wait_until(lambda: offsets(client) == expected, PATIENCE_S, "offsets of a deleted topic stay")
