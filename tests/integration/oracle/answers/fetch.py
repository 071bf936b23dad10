"""Fetch: what is read, within which limits, in sessions and without."""

from typing import Any

from kavka.protocol.api import ApiKey
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.create_topics import CreateTopicsRequest
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kavka.protocol.records.batch import Record
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.legacy import build_message_set
from tests.integration.oracle.answers.stage import (
    KAFKA_39,
    NOWHERE,
    TIME_MS,
    TIME_TO_SETTLE_S,
    Stage,
    batch,
    creatable,
    scenario,
)
from tests.support.processes import wait_until


def topic_part(stage: Stage, topic: str, *partitions: FetchPartition) -> FetchTopic:
    """A topic in the request, by id where the version has ids."""
    topic_id = stage.id_of(topic) if stage.version >= 13 else bytes(16)
    return FetchTopic(topic=topic, topic_id=topic_id, partitions=list(partitions))


def part(index: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)


def get(stage: Stage, label: str, topics: list[FetchTopic], **fields: Any) -> Any:
    """Fetch and record the answer; it waits for nothing unless told."""
    request = FetchRequest(**{"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, **fields}, topics=topics)
    return stage.ask(label, request)


def filled(stage: Stage, suffix: str = "", partitions: int = 2) -> str:
    """A topic with three batches in partition 0 and one in partition 1."""
    topic = stage.topic(suffix, partitions)
    for count in (2, 3, 1):
        stage.append(topic, batch(count))
    stage.append(topic, batch(2, codec=Codec.GZIP), 1)
    return topic


@scenario(ApiKey.FETCH, "4-99")
def batches_are_read_from_the_one_that_holds_the_offset(stage: Stage) -> None:
    topic = filled(stage)
    for offset in (0, 1, 2, 4, 5, 6):
        get(stage, f"offset {offset}", [topic_part(stage, topic, part(0, offset))])
    get(stage, "two partitions", [topic_part(stage, topic, part(1), part(0))])
    get(stage, "the same twice", [topic_part(stage, topic, part(0), part(0, 2))])
    for offset in (7, -1, -5, 1 << 40):
        get(stage, f"out of range {offset}", [topic_part(stage, topic, part(0, offset))])
    get(stage, "nothing", [])
    get(stage, "no partitions", [topic_part(stage, topic)])


@scenario(ApiKey.FETCH, "4-99")
def limits_are_kept(stage: Stage) -> None:
    topic = filled(stage)
    for limit in (0, 1, 100, 200, -1):
        get(stage, f"partition limit {limit}", [topic_part(stage, topic, part(0, 0, limit), part(1, 0, limit))])
        get(stage, f"whole limit {limit}", [topic_part(stage, topic, part(0), part(1))], max_bytes=limit)
    get(stage, "first partition empty", [topic_part(stage, topic, part(1, 2), part(0))], max_bytes=1)
    get(stage, "first partition wrong", [topic_part(stage, topic, part(1, 9), part(0))], max_bytes=1)
    get(stage, "waits in vain", [topic_part(stage, topic, part(0, 6))], min_bytes=1, max_wait_ms=50)
    get(stage, "more than there is", [topic_part(stage, topic, part(0))], min_bytes=1 << 20, max_wait_ms=50)
    get(stage, "negative wait", [topic_part(stage, topic, part(0, 6))], min_bytes=1, max_wait_ms=-1)


@scenario(ApiKey.FETCH, "4-12")
def unknown_places_are_not_read(stage: Stage) -> None:
    topic = filled(stage)
    get(stage, "unknown partition", [topic_part(stage, topic, part(5))])
    get(stage, "negative partition", [topic_part(stage, topic, part(-1))])
    get(stage, "unknown topic", [topic_part(stage, topic + ".nowhere", part())])
    get(stage, "illegal topic", [topic_part(stage, "not/legal", part())])
    get(stage, "known and unknown", [topic_part(stage, topic, part(7), part(0))], min_bytes=1 << 20, max_wait_ms=100)


@scenario(ApiKey.FETCH, "13-99")
def unknown_topic_ids_are_not_read(stage: Stage) -> None:
    topic = filled(stage)
    known = topic_part(stage, topic, part(0))
    get(stage, "unknown id", [FetchTopic(topic_id=NOWHERE, partitions=[part(0)])])
    get(stage, "unknown and known", [FetchTopic(topic_id=NOWHERE, partitions=[part(0)]), known])
    get(stage, "zero id", [FetchTopic(partitions=[part(0)])])
    get(stage, "unknown partition", [topic_part(stage, topic, part(9))])


@scenario(ApiKey.FETCH, "9-99")
def leader_epochs_are_checked(stage: Stage) -> None:
    topic = filled(stage)
    for epoch in (-1, 0, 1, 7):
        get(stage, f"epoch {epoch}", [topic_part(stage, topic, part(0, current_leader_epoch=epoch))])
    if stage.version >= 12:
        for epoch, offset in ((0, 0), (0, 6), (0, 9), (1, 3), (5, 0)):
            asked = part(0, offset, current_leader_epoch=0, last_fetched_epoch=epoch)
            get(stage, f"last epoch {epoch} at {offset}", [topic_part(stage, topic, asked)])


@scenario(ApiKey.FETCH, "4-99")
def isolation_levels_are_served(stage: Stage) -> None:
    topic = filled(stage)
    for level in (0, 1, 2):
        get(stage, f"level {level}", [topic_part(stage, topic, part(0))], isolation_level=level)


@scenario(ApiKey.FETCH, "7-99")
def sessions_are_incremental(stage: Stage) -> None:
    topic = filled(stage, partitions=3)
    parts = [topic_part(stage, topic, part(0), part(1), part(2))]
    opened = get(stage, "create", parts, session_id=0, session_epoch=0)
    session = opened.session_id
    get(stage, "nothing new", [], session_id=session, session_epoch=1)
    moved = [topic_part(stage, topic, part(0, 6), part(1, 2))]
    get(stage, "moved on", moved, session_id=session, session_epoch=2)
    stage.append(topic, batch(1), 2)
    get(stage, "one has data", [], session_id=session, session_epoch=3)
    get(stage, "caught up", [topic_part(stage, topic, part(2, 1))], session_id=session, session_epoch=4)
    gone = ForgottenTopic(topic=topic, topic_id=parts[0].topic_id, partitions=[1, 2])
    stage.append(topic, batch(1), 2)
    get(stage, "forgotten", [], session_id=session, session_epoch=5, forgotten_topics_data=[gone])
    get(stage, "wrong epoch", [], session_id=session, session_epoch=9)
    get(stage, "the right epoch after it", [], session_id=session, session_epoch=6)
    get(stage, "unknown session", [], session_id=session + 1, session_epoch=1)
    bad = [topic_part(stage, topic, part(9))]
    get(stage, "an unknown partition joins", bad, session_id=session, session_epoch=7)
    get(stage, "and again", [], session_id=session, session_epoch=8)
    get(stage, "closed", parts, session_id=session, session_epoch=-1)
    get(stage, "after closing", [], session_id=session, session_epoch=9)
    get(stage, "closing what is not there", parts, session_id=session, session_epoch=-1)


@scenario(ApiKey.FETCH, "7-99")
def sessions_have_edges(stage: Stage) -> None:
    topic = filled(stage)
    parts = [topic_part(stage, topic, part(0), part(1))]
    get(stage, "none wanted", parts, session_id=0, session_epoch=-1)
    get(stage, "empty creation", [], session_id=0, session_epoch=0)
    get(stage, "id 0 with an epoch", parts, session_id=0, session_epoch=3)
    first = get(stage, "created", parts, session_id=0, session_epoch=0).session_id
    get(stage, "replaced", parts, session_id=first, session_epoch=0)
    get(stage, "the old one", [], session_id=first, session_epoch=1)
    wrong = get(stage, "created out of range", [topic_part(stage, topic, part(0, 99))], session_epoch=0)
    get(stage, "out of range again", [], session_id=wrong.session_id, session_epoch=1)
    everything = ForgottenTopic(topic=topic, topic_id=parts[0].topic_id, partitions=[0, 1])
    last = get(stage, "created again", parts, session_id=0, session_epoch=0).session_id
    get(stage, "all forgotten", [], session_id=last, session_epoch=1, forgotten_topics_data=[everything])
    get(stage, "after that", [], session_id=last, session_epoch=2)


@scenario(ApiKey.FETCH, "7-99")
def topics_of_sessions_may_be_deleted(stage: Stage) -> None:
    gone, kept = stage.topic("gone"), stage.topic("kept")
    parts = [topic_part(stage, topic, part(0)) for topic in (gone, kept)]
    sessions = [get(stage, "create", parts, session_epoch=0).session_id for _ in range(2)]
    delete(stage, gone)
    for session, again in zip(sessions, ([], parts), strict=True):
        get(stage, "deleted", again, session_id=session, session_epoch=1)
    get(stage, "without a session", parts, session_epoch=-1)
    known = ForgottenTopic(topic=gone, topic_id=parts[0].topic_id, partitions=[0])
    get(stage, "forgotten", [], session_id=sessions[0], session_epoch=2, forgotten_topics_data=[known])
    get(stage, "and gone", [], session_id=sessions[0], session_epoch=3)
    wait_until(lambda: create(stage, gone), TIME_TO_SETTLE_S, "its name is not free")
    get(stage, "made anew", [], session_id=sessions[1], session_epoch=2)
    get(stage, "forgotten too", [], session_id=sessions[1], session_epoch=3, forgotten_topics_data=[known])
    get(stage, "and gone too", [], session_id=sessions[1], session_epoch=4)


def delete(stage: Stage, topic: str) -> None:
    """Delete a topic, and wait until nothing can be fetched by its name."""
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=60_000)
    assert stage.client.ask(request, 5).responses[0].error_code == 0
    await_fetch(stage, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def create(stage: Stage, topic: str) -> bool:
    """Whether there is a new topic of that name, with a leader."""
    created = stage.client.ask(CreateTopicsRequest(topics=[creatable(topic, 1)], timeout_ms=60_000), 7)
    if created.topics[0].error_code != ErrorCode.NONE:
        return False
    await_fetch(stage, topic, ErrorCode.NONE)
    return True


def await_fetch(stage: Stage, topic: str, code: ErrorCode) -> None:
    """Wait until a fetch by the topic's name is answered like that."""
    parts = [FetchTopic(topic=topic, partitions=[part()])]
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=parts)

    def is_so() -> bool:
        return bool(stage.client.ask(fetch, 12).responses[0].partitions[0].error_code == code)

    wait_until(is_so, TIME_TO_SETTLE_S, f"{topic} does not get to {code.name}")


@scenario(ApiKey.FETCH, "0-3", [KAFKA_39])
def old_versions_get_old_formats(stage: Stage) -> None:
    topic = filled(stage)
    for offset in (0, 1, 3, 6, 8):
        get(stage, f"offset {offset}", [topic_part(stage, topic, part(0, offset))])
    get(stage, "gzip", [topic_part(stage, topic, part(1))])
    records = [Record(timestamp_ms=TIME_MS + number, key=b"k", value=b"v%d" % number) for number in range(3)]
    old = stage.topic("old")
    for magic in (0, 1):
        stage.append(old, build_message_set(records, magic), version=2)
    get(stage, "written old", [topic_part(stage, old, part())])
    get(stage, "small limit", [topic_part(stage, topic, part(0, 0, 50))])
    get(stage, "limit of one batch", [topic_part(stage, topic, part(0, 0, 150))])
    get(stage, "unknown partition", [topic_part(stage, topic, part(5))])
    zstd = stage.topic("zstd")
    stage.append(zstd, batch(2, codec=Codec.ZSTD))
    get(stage, "zstd", [topic_part(stage, zstd, part())])


@scenario(ApiKey.FETCH, "4-99")
def zstd_needs_a_new_version(stage: Stage) -> None:
    topic = stage.topic(compression_type="producer")
    stage.append(topic, batch(2, codec=Codec.ZSTD))
    get(stage, "zstd batch", [topic_part(stage, topic, part())])
    configured = stage.topic("configured", compression_type="zstd")
    stage.append(configured, batch(2))
    get(stage, "zstd topic", [topic_part(stage, configured, part())])
    for codec in ("gzip", "snappy", "lz4", "uncompressed"):
        other = stage.topic(codec, compression_type=codec)
        stage.append(other, batch(2, codec=Codec.GZIP))
        get(stage, f"recompressed to {codec}", [topic_part(stage, other, part())])


@scenario(ApiKey.FETCH, "4-14")
def readers_are_told_apart_by_replica_id(stage: Stage) -> None:
    topic = filled(stage)
    for replica_id in (-2, -3, 5):
        get(stage, f"replica {replica_id}", [topic_part(stage, topic, part(0))], replica_id=replica_id)
    get(stage, "a consumer after them", [topic_part(stage, topic, part(0, 5))])


@scenario(ApiKey.FETCH, "4-99")
def log_starts_are_respected(stage: Stage) -> None:
    topic = filled(stage)
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=3)])
    stage.client.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=60_000), 1)
    for offset in (0, 2, 3, 4):
        get(stage, f"offset {offset}", [topic_part(stage, topic, part(0, offset))])
