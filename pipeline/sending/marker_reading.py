"""What markers say: read behind all that was there when it was asked for, committed records alone."""

import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kavka.client import Admin, Consumer, OffsetSpec, TopicPartition
from kavka.client.api_errors import KafkaTimeoutError
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace, common_settings, decoded

_POLL_MS: Final = 100.0


class MarkersRead(NamedTuple):
    """The newest marker of each name, and where to read on in each partition of the topic."""

    markers: Mapping[MarkerName, Marker]
    offsets: Mapping[int, int]


NOTHING_READ: Final = MarkersRead({}, {})


def read_markers(
    place: MarkerPlace, known: MarkersRead, timeout_ms: float, partitions: Iterable[int] | None = None
) -> MarkersRead:
    """What is `known`, and what has come since; of these partitions of the topic, or of all.

    All counts that lies there when this is called. So it waits for transactions that are open then in these
    partitions: a marker behind one cannot be told from one that will be aborted. Raises KafkaTimeoutError when they
    are open still after `timeout_ms`, and KafkaError.
    """
    wanted = range(place.partition_count) if partitions is None else partitions
    asked = [TopicPartition(place.topic, partition) for partition in wanted]
    settings = common_settings(place.settings)
    markers, offsets = dict(known.markers), dict(known.offsets)
    with Admin(settings) as admin:
        found = admin.list_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    ends = {each: found[each].offset for each in asked if found[each].offset > offsets.get(each.partition, 0)}
    if not ends:
        return MarkersRead(markers, offsets)
    deadline = time.monotonic() + timeout_ms / 1000
    own = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    with Consumer({**settings, **own}) as consumer:
        consumer.assign(ends)
        for each in ends:
            consumer.seek(each, offsets.get(each.partition, 0))
        while left := [each for each in ends if consumer.position(each) < ends[each]]:
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(
                    f"an open transaction holds back markers in {left[0].topic}-{left[0].partition} for {timeout_ms} ms"
                )
            for record in consumer.poll(_POLL_MS):
                pair = decoded(record.key, record.value)
                if pair is not None and pair[1] is not None:
                    markers[pair[0]] = pair[1]
                elif pair is not None:
                    markers.pop(pair[0], None)
        offsets.update({each.partition: consumer.position(each) for each in ends})
    return MarkersRead(markers, offsets)
