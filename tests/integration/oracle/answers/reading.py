"""What is known about logs without reading them: offsets by time, leader epochs, deleted records, directories."""

from kavka.protocol.api import ApiKey
from kavka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kavka.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kavka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.integration.oracle.answers.stage import KAFKA_39, TIME_MS, Stage, batch, scenario

TIMES = (-1, -2, -3, -4, -5, -6, -7, -99, 0, TIME_MS - 1, TIME_MS, TIME_MS + 1, TIME_MS + 60_000)


def list_offsets(
    stage: Stage, label: str, topic: str, *parts: ListOffsetsPartition, level: int = 0, replica: int = -1
) -> None:
    request = ListOffsetsRequest(
        replica_id=replica,
        isolation_level=level if stage.version >= 2 else 0,
        topics=[ListOffsetsTopic(name=topic, partitions=list(parts))],
        timeout_ms=60_000,
    )
    stage.ask(label, request)


@scenario(ApiKey.LIST_OFFSETS)
def offsets_are_found_by_time(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    for count in (2, 3):
        stage.append(topic, batch(count))
    stage.append(topic, batch(1, timestamp_ms=TIME_MS + 50))
    stage.append(topic, batch(1))
    for time_ms in TIMES:
        label = f"time {time_ms - TIME_MS if time_ms > 0 else time_ms}"
        name = f"{label} relative" if time_ms > 0 else label
        filled, empty = (ListOffsetsPartition(partition_index=index, timestamp=time_ms) for index in (0, 1))
        list_offsets(stage, name, topic, filled)
        list_offsets(stage, f"{name} in an empty log", topic, empty)
    for level in (1, 2):
        asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
        list_offsets(stage, f"level {level}", topic, asked, level=level)


@scenario(ApiKey.LIST_OFFSETS, "0-0", [KAFKA_39])
def segment_starts_are_listed(stage: Stage) -> None:
    topic = stage.topic(partitions=2, segment_bytes="120")
    for count in (2, 3, 1):
        stage.append(topic, batch(count))

    def ask(label: str, replica: int = -1) -> None:
        for time_ms in (*range(-6, 1), TIME_MS + 86_400_000):
            for count in (-1, 0, 1, 2, 9):
                for index in (0, 1):
                    asked = ListOffsetsPartition(partition_index=index, timestamp=time_ms, max_num_offsets=count)
                    name = f"{count} of {index} at {time_ms if time_ms <= 0 else 'the end of time'} {label}"
                    list_offsets(stage, name, topic, asked, replica=replica)

    ask("by a consumer")
    ask("by a debugging one", -2)
    cut = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=4)])
    stage.ask("deleted", DeleteRecordsRequest(topics=[cut], timeout_ms=60_000), 2)
    ask("after a deletion")


@scenario(ApiKey.LIST_OFFSETS)
def unknown_places_have_no_offsets(stage: Stage) -> None:
    topic = stage.topic()
    list_offsets(stage, "unknown partition", topic, ListOffsetsPartition(partition_index=4, timestamp=-1))
    list_offsets(stage, "unknown topic", topic + ".no", ListOffsetsPartition(partition_index=0, timestamp=-1))
    asked = [ListOffsetsPartition(partition_index=0, timestamp=time_ms) for time_ms in (-1, -2)]
    list_offsets(stage, "the same partition twice", topic, *asked)
    list_offsets(stage, "no partitions", topic)
    list_offsets(stage, "debugging consumer", topic, asked[0], replica=-2)
    if stage.version >= 4:
        for epoch in (-1, 0, 3):
            asked_epoch = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
            list_offsets(stage, f"epoch {epoch}", topic, asked_epoch)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def epochs_have_ends(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.append(topic, batch(3))

    def ask(label: str, name: str, index: int, epoch: int, current: int = -1) -> None:
        asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        topics = [OffsetForLeaderTopic(topic=name, partitions=[asked])]
        stage.ask(label, OffsetForLeaderEpochRequest(replica_id=-1 if stage.version >= 3 else -2, topics=topics))

    for epoch in (-1, 0, 1, 9):
        ask(f"epoch {epoch}", topic, 0, epoch)
        ask(f"epoch {epoch} in an empty log", topic, 1, epoch)
    ask("unknown partition", topic, 7, 0)
    ask("unknown topic", topic + ".no", 0, 0)
    if stage.version >= 2:
        for current in (0, 4):
            ask(f"current epoch {current}", topic, 0, 0, current)


@scenario(ApiKey.DELETE_RECORDS)
def records_are_deleted_up_to_an_offset(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    for _ in range(3):
        stage.append(topic, batch(2))

    def delete(label: str, name: str, index: int, offset: int) -> None:
        asked = DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
        stage.ask(label, DeleteRecordsRequest(topics=[asked], timeout_ms=60_000))

    for offset in (0, 3, 2, 7, -2, -5):
        delete(f"to {offset}", topic, 0, offset)
    stage.append(topic, batch(2))
    delete("to the end", topic, 0, -1)
    delete("empty log to the end", topic, 1, -1)
    delete("empty log to 1", topic, 1, 1)
    delete("unknown partition", topic, 5, 0)
    delete("unknown topic", topic + ".no", 0, 0)
    delete("illegal name", "not/legal", 0, 0)
    for time_ms in (-2, -1, TIME_MS):
        asked = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
        topics = [ListOffsetsTopic(name=topic, partitions=[asked])]
        stage.ask(f"offset at {min(time_ms, 0)}", ListOffsetsRequest(replica_id=-1, topics=topics), 7)


@scenario(ApiKey.DELETE_RECORDS)
def compacted_topics_keep_their_records(stage: Stage) -> None:
    topic = stage.topic(cleanup_policy="compact")
    stage.append(topic, batch(2))
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=1)])
    stage.ask("delete", DeleteRecordsRequest(topics=[asked], timeout_ms=60_000))


@scenario(ApiKey.DESCRIBE_LOG_DIRS)
def directories_are_described(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.append(topic, batch(3))

    def ask(label: str, topics: list[DescribableLogDirTopic] | None) -> None:
        stage.ask(label, DescribeLogDirsRequest(topics=topics))

    ask("both partitions", [DescribableLogDirTopic(topic=topic, partitions=[0, 1])])
    ask("one partition", [DescribableLogDirTopic(topic=topic, partitions=[1])])
    ask("unknown partition", [DescribableLogDirTopic(topic=topic, partitions=[8])])
    ask("unknown topic", [DescribableLogDirTopic(topic=topic + ".no", partitions=[0])])
    ask("nothing", [])
    ask("no partitions", [DescribableLogDirTopic(topic=topic, partitions=[])])


@scenario(ApiKey.ALTER_REPLICA_LOG_DIRS)
def replicas_move_to_log_directories_only(stage: Stage) -> None:
    topic = stage.topic(partitions=2)

    def ask(label: str, path: str, *topics: tuple[str, list[int]]) -> None:
        wanted = [AlterReplicaLogDirTopic(name=name, partitions=partitions) for name, partitions in topics]
        stage.ask(label, AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=wanted)]))

    ask("an unknown directory", "/nowhere", (topic, [0, 1]))
    ask("a relative one", "data", (topic, [0]))
    ask("none", "", (topic, [0]))
    ask("an unknown topic", "/nowhere", (topic + ".no", [0]))
    ask("too long a name", "/nowhere", ("n" * 240, [0]))
    ask("no partitions", "/nowhere", (topic, []))
    ask("no topics", "/nowhere")
