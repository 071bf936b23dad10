"""What a consumer of ours is at, in words: for a test whose records do not come, which mostly cannot be had again."""

import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import confluent_kafka

from kavka.client.consumer.consumer import Consumer
from kavka.client.consumer.positions import PartitionState
from kavka.client.kafka_error import KafkaError
from kavka.client.topic_partition import TopicPartition

_ANOTHER_S = 15.0
_METRICS = ("fetch-total", "fetch-latency-max", "records-consumed-total")
_COUNTS = ("requests", "answers", "timeouts", "connections", "disconnects", "failed_connects", "bad_answers")


class Moment(NamedTuple):
    """By each clock there is: a process, or a machine, that stood still shows where they differ."""

    wall: float
    monotonic: float
    processor: float

    @classmethod
    def now(cls) -> Self:
        return cls(time.time(), time.monotonic(), time.process_time())

    def since(self) -> str:
        wall, monotonic, processor = (now - then for now, then in zip(Moment.now(), self, strict=True))
        return f"it took {monotonic:.2f} s (by the calendar {wall:.2f}), {processor:.2f} of them of this process"


def explained(reader: Consumer, began: Moment) -> str:
    """Why a poll that began then may have given nothing: what the consumer believes, and what others find there."""
    core = reader._core
    bootstrap = core.settings.bootstrap_servers
    lines = [began.since(), *_state(reader)]
    lines += [
        _as_another_finds_it(bootstrap, partition, position.offset)
        for partition, position in core.subscription.consumed().items()
    ]
    began = Moment.now()
    try:
        lines.append(f"another poll gave {len(reader.poll(_ANOTHER_S * 1000))} records: {began.since()}")
    except (KafkaError, confluent_kafka.KafkaException) as error:
        lines.append(f"another poll raised {error!r}")
    return "\n  ".join([*lines, *_state(reader)])


def _state(reader: Consumer) -> Iterator[str]:
    core = reader._core
    now_ms = core.now_ms()
    cluster = core.metadata.cluster
    machine: Any = core.thread._machine
    with core.subscription.lock:
        for state in core.subscription.states():
            yield _of_partition(state, now_ms)
            yield f"  as the metadata (version {cluster.version}) have it: {cluster.partition(state.partition)}"
        buffer = core.buffer
        yield f"buffer: {len(buffer._ready)} chunks of {buffer.size_bytes} bytes, is_full={buffer.is_full}"
    fetcher = machine._fetcher
    yield f"owe an answer to a fetch: {sorted(fetcher._out)}"
    for node_id, session in list(fetcher._sessions.items()):
        yield f"session with {node_id}: id={session._id} epoch={session._epoch} there={session._there}"
    for link in list(core.opened.network._links.values()):
        in_flight = link.connection.in_flight if link.has_socket else 0
        left_ms = link.deadline_ms - now_ms
        yield f"link to {link.node}: {link.stage.value}, in_flight={in_flight}, to its deadline {left_ms:.0f} ms"
    counts = core.opened.network.counts
    yield " ".join(f"{name}={getattr(counts, name)}" for name in _COUNTS)
    yield " ".join(f"{name}={reader.metrics[name]}" for name in _METRICS)
    yield f"news told={not core.news._lock.locked()} failure={core.thread.failure!r}"
    thread = core.thread._thread
    frame = sys._current_frames().get(thread.ident) if thread is not None and thread.ident is not None else None
    yield "its thread: " + (" <- ".join(_places(frame)) if frame is not None else "none")


def _of_partition(state: PartitionState, now_ms: float) -> str:
    told = [f"{name}={getattr(state, name)}" for name in state.__slots__ if name not in ("partition", "phase")]
    return f"{state.partition} {state.phase.value}, now_ms={now_ms:.0f}: {' '.join(told)}"


def _places(frame: Any) -> list[str]:
    """Of a stack, the innermost first."""
    return [f"{each.name}:{each.lineno}" for each in reversed(traceback.extract_stack(frame, limit=8))]


def _as_another_finds_it(bootstrap: Sequence[str], partition: TopicPartition, offset: int) -> str:
    """Whether the record is there at all, by a client that is not ours."""
    settings = {"bootstrap.servers": ",".join(bootstrap), "group.id": "of nobody", "enable.auto.commit": False}
    other = confluent_kafka.Consumer(settings)
    place = confluent_kafka.TopicPartition(*partition, offset)
    try:
        low, high = other.get_watermark_offsets(place, timeout=_ANOTHER_S)
        other.assign([place])
        message = other.poll(_ANOTHER_S) if offset < high else None
        found = "nothing" if message is None else f"{message.value()!r} at {message.offset()}, error {message.error()}"
        return f"another client: {partition} goes from {low} to {high}, and from {offset} on there is {found}"
    except confluent_kafka.KafkaException as error:
        return f"another client: {error}"
    finally:
        other.close()
