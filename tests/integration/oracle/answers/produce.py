"""Produce: what is taken, what is refused, and with which error."""

from kavka.protocol.api import ApiKey
from kavka.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka.protocol.records.batch import ControlType, Record, TimestampType, build_batch, build_control_batch
from kavka.protocol.records.compression import Codec
from kavka.protocol.records.legacy import build_message_set
from tests.integration.oracle.answers.stage import (
    KAFKA_39,
    KAFKA_43,
    NOWHERE,
    TIME_MS,
    Stage,
    batch,
    patched,
    produce_request,
    scenario,
)
from tests.support.wire import ClosedError

DAY_MS = 86_400_000


def put(stage: Stage, label: str, topic: str, records: bytes | None, partition: int = 0, acks: int = -1) -> None:
    """Produce and record the answer."""
    topic_id = stage.id_of(topic) if stage.version >= 13 else bytes(16)
    stage.ask(label, produce_request(topic, records, partition, acks=acks, topic_id=topic_id))


@scenario(ApiKey.PRODUCE, "3-99")
def acks_are_checked(stage: Stage) -> None:
    topic = stage.topic()
    for acks in (1, -1, 2, -2):
        put(stage, f"acks {acks}", topic, batch(2), acks=acks)
    request = produce_request(topic, batch(3), acks=0, topic_id=stage.id_of(topic))
    stage.client.send(request, stage.version)
    put(stage, "the next one after acks=0", topic, batch(1))


@scenario(ApiKey.PRODUCE, "3-99")
def an_error_with_acks_0_closes_the_connection(stage: Stage) -> None:
    topic = stage.topic()
    stage.client.send(produce_request(topic, batch(), 7, acks=0, topic_id=stage.id_of(topic)), stage.version)
    try:
        stage.note("behind a failed acks=0", stage.client.receive_frame())
    except ClosedError:
        stage.note("behind a failed acks=0", "closed")


@scenario(ApiKey.PRODUCE, "3-12")
def unknown_places_are_refused(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    put(stage, "unknown partition", topic, batch(), 2)
    put(stage, "negative partition", topic, batch(), -1)
    put(stage, "unknown topic", topic + ".nowhere", batch())
    put(stage, "invalid topic name", "not/legal", batch())
    put(stage, "empty topic name", "", batch())
    stage.ask("nothing at all", ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]))
    data = [PartitionProduceData(index=index, records=batch()) for index in (1, 5, 0)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    stage.ask("good and bad partitions", request)


@scenario(ApiKey.PRODUCE, "13-99", oracles=(KAFKA_43,))
def unknown_topic_ids_are_refused(stage: Stage) -> None:
    topic = stage.topic()
    topic_id = stage.id_of(topic)
    stage.ask("unknown id", produce_request("", batch(), topic_id=NOWHERE))
    stage.ask("zero id", produce_request("", batch()))
    stage.ask("unknown partition", produce_request("", batch(), 3, topic_id=topic_id))


@scenario(ApiKey.PRODUCE, "3-99")
def malformed_batches_are_refused(stage: Stage) -> None:
    topic = stage.topic()
    good = batch(3)
    put(stage, "empty", topic, b"")
    put(stage, "two batches", topic, good + good)
    put(stage, "wrong crc", topic, patched(good, 60, ">b", 5, fix_crc=False))
    put(stage, "wrong magic 1", topic, build_message_set([Record(timestamp_ms=TIME_MS, key=b"k", value=b"v")], 1))
    put(stage, "wrong magic 0", topic, build_message_set([Record(key=b"k", value=b"v")], 0))
    put(stage, "magic 3", topic, patched(good, 16, ">b", 3, fix_crc=False))
    put(stage, "cut short", topic, good[:-5])
    put(stage, "header only", topic, good[:40])
    put(stage, "base offset 7", topic, batch(2, base_offset=7))
    put(stage, "count too small", topic, patched(good, 57, ">i", 2))
    put(stage, "count too large", topic, patched(good, 57, ">i", 4))
    put(stage, "count negative", topic, patched(good, 57, ">i", -1))
    put(stage, "no records", topic, patched(good, 57, ">i", 0))
    put(stage, "last offset delta too large", topic, patched(good, 23, ">i", 9))
    put(stage, "last offset delta negative", topic, patched(good, 23, ">i", -3))
    put(stage, "codec 5", topic, patched(good, 21, ">h", 5))
    put(stage, "log append time claimed", topic, batch(timestamp_type=TimestampType.LOG_APPEND))
    put(stage, "after all that", topic, good)
    put(stage, "claims gzip", topic, patched(good, 21, ">h", 1))


@scenario(ApiKey.PRODUCE, "3-99")
def control_and_transactional_batches_are_refused(stage: Stage) -> None:
    topic = stage.topic()
    marker = build_control_batch(
        ControlType.COMMIT, timestamp_ms=TIME_MS, producer_id=5, producer_epoch=0, coordinator_epoch=0
    )
    put(stage, "a control batch", topic, marker)


@scenario(ApiKey.PRODUCE, "3-99")
def every_codec_is_taken_from_its_version_on(stage: Stage) -> None:
    topic = stage.topic()
    for codec in Codec:
        put(stage, codec.name, topic, batch(5, codec=codec))


@scenario(ApiKey.PRODUCE, "3-99")
def the_topics_settings_are_kept(stage: Stage) -> None:
    small = stage.topic("small", max_message_bytes="200")
    put(stage, "small enough", small, batch())
    put(stage, "too large", small, batch(value=b"x" * 300))
    compact = stage.topic("compact", cleanup_policy="compact")
    records = [Record(timestamp_ms=TIME_MS, key=key, value=b"v") for key in (b"a", None, b"b", None)]
    put(stage, "null keys", compact, build_batch(records))
    put(stage, "keys", compact, batch(2))
    append_time = stage.topic("append-time", message_timestamp_type="LogAppendTime")
    put(stage, "log append time", append_time, batch(2))
    bounded = stage.topic("bounded", message_timestamp_before_max_ms="3600000", message_timestamp_after_max_ms="60000")
    put(stage, "too old", bounded, batch(2, timestamp_ms=TIME_MS - DAY_MS))
    put(stage, "too new", bounded, batch(2, timestamp_ms=TIME_MS + DAY_MS))
    put(stage, "no timestamp", bounded, batch(1, timestamp_ms=-1))
    put(stage, "in time", bounded, batch(2))


@scenario(ApiKey.PRODUCE, "3-99")
def timestamps_have_default_bounds(stage: Stage) -> None:
    topic = stage.topic()
    put(stage, "long ago", topic, batch(1, timestamp_ms=1))
    put(stage, "none", topic, batch(1, timestamp_ms=-1))
    put(stage, "negative", topic, batch(1, timestamp_ms=-2))
    put(stage, "far in the future", topic, batch(1, timestamp_ms=TIME_MS + 400 * DAY_MS))


@scenario(ApiKey.PRODUCE, "3-99")
def idempotent_sequences_are_checked(stage: Stage) -> None:
    topic = stage.topic(partitions=4)

    def send(label: str, sequence: int, count: int = 2, epoch: int = 1, partition: int = 0) -> None:
        records = batch(count, producer_id=4711, producer_epoch=epoch, base_sequence=sequence)
        put(stage, label, topic, records, partition)

    send("first", 0)
    send("second", 2)
    send("duplicate of the second", 2)
    send("duplicate of the first", 0)
    send("a gap", 7)
    send("overlaps", 3)
    send("larger than what was there", 0, count=4)
    send("old epoch", 4, epoch=0)
    send("new epoch, not from 0", 3, epoch=2)
    send("new epoch", 0, epoch=2)
    send("the old epoch again", 4)
    for number in range(1, 7):
        send(f"batch {number}", number * 2, epoch=2)
    send("duplicate of the one five before", 2, epoch=2)
    send("duplicate of one forgotten", 0, epoch=2)
    send("unknown producer, not from 0", 5, partition=1)
    send("wraps", 2**31 - 2, count=4, partition=2)
    send("after the wrap", 2, partition=2)
    records = batch(1, producer_id=4711, producer_epoch=0, base_sequence=-1)
    put(stage, "no sequence", topic, records, 3)
    records = batch(1, producer_id=-1, producer_epoch=0, base_sequence=0)
    put(stage, "no producer", topic, records, 3)


@scenario(ApiKey.PRODUCE, "0-2", [KAFKA_39])
def old_message_sets_are_taken(stage: Stage) -> None:
    topic = stage.topic()
    records = [Record(timestamp_ms=TIME_MS + number, key=b"k", value=b"v%d" % number) for number in range(3)]
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            put(stage, f"magic {magic} {codec.name}", topic, build_message_set(records, magic, codec=codec))
    put(stage, "magic 2", topic, batch())
    put(stage, "magic 2 twice", topic, batch() + batch())
    put(stage, "magic 0 and 1", topic, build_message_set(records, 0) + build_message_set(records, 1))
    put(stage, "two wrappers", topic, build_message_set(records, 1, codec=Codec.GZIP) * 2)
    put(stage, "empty", topic, b"")
    put(stage, "cut short", topic, build_message_set(records, 1)[:-3])
    put(stage, "wrong crc", topic, build_message_set(records, 1)[:-1] + b"!")
    put(stage, "zstd in magic 2", topic, batch(codec=Codec.ZSTD))
    for acks in (1, 0, 2):
        if acks:
            put(stage, f"acks {acks}", topic, build_message_set(records, 1), acks=acks)
    put(stage, "unknown partition", topic, build_message_set(records, 1), 4)


@scenario(ApiKey.PRODUCE, "3-12")
def replicas_in_sync_are_counted(stage: Stage) -> None:
    topic = stage.topic(min_insync_replicas="2")
    for acks in (-1, 1):
        put(stage, f"acks {acks}", topic, batch(), acks=acks)
