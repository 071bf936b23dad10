"""What markers say: read behind all that was there when it was asked for, committed records alone.

A name's markers may lie in several partitions of their topic: where it was given more of them, names have moved. So the
furthest one counts, and whoever has read nothing yet reads all partitions.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from kavka.client import Admin, ConfigResource, Consumer, OffsetSpec, TopicPartition
from kavka.client.api_errors import KafkaError, KafkaTimeoutError
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace, common_settings, decoded

_POLL_MS: Final = 100.0
_LONGEST_SETTING: Final = "transaction.max.timeout.ms"
_LONGEST_MS: Final = 15 * 60_000
"""Kafka's default, for when a broker does not say."""
_SLACK_MS: Final = 60_000
"""For coordinators: they look for transactions that are over their time every ten seconds."""
_OWN: Final = {"enable.auto.commit": "false", "auto.offset.reset": "earliest"}

log = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class MarkersRead(NamedTuple):
    """The newest marker of each name in each partition of the topic, and where to read on in it."""

    markers: Mapping[int, Mapping[MarkerName, Marker]]
    offsets: Mapping[int, int]

    def furthest(self, name: MarkerName) -> Marker | None:
        """How far a name has got."""
        found = [markers[name] for markers in self.markers.values() if name in markers]
        return max(found, key=lambda each: (each.batch_id, each.is_whole, each.position), default=None)


NOTHING_READ: Final = MarkersRead({}, {})


def read_markers(
    place: MarkerPlace,
    known: MarkersRead,
    timeout_ms: float,
    matters: Callable[[MarkerName], bool],
    partitions: Iterable[int] | None = None,
) -> MarkersRead:
    """What is `known`, and what has come since; of these partitions of the topic, or of all.

    All counts that lies there when this is called, of names that matter. A marker behind an open transaction cannot be
    told from one that will be aborted: so if there is one whose name matters, that transaction's end is waited for,
    for `timeout_ms`, and with a warning for as long as brokers let any be open. Raises KafkaTimeoutError when it is
    open still, and KafkaError.
    """
    wanted = range(place.partition_count) if partitions is None else partitions
    asked = [TopicPartition(place.topic, partition) for partition in wanted]
    settings = common_settings(place.settings)
    markers = {partition: dict(found) for partition, found in known.markers.items()}
    offsets = {**dict.fromkeys((each.partition for each in asked), 0), **known.offsets}
    with Admin(settings) as admin:
        latest = admin.list_offsets(dict.fromkeys(asked, OffsetSpec.LATEST))
    ends = {each: latest[each].offset for each in asked if latest[each].offset > offsets[each.partition]}
    if not ends:
        return MarkersRead(markers, offsets)
    patience = _Patience(settings, timeout_ms)
    with Consumer({**settings, **_OWN, "isolation.level": "read_committed"}) as consumer:
        consumer.assign(ends)
        for each in ends:
            consumer.seek(each, offsets[each.partition])
        is_looked_behind = False
        while left := {each: position for each in ends if (position := consumer.position(each)) < ends[each]}:
            records = consumer.poll(_POLL_MS)
            for record in records:
                _note(markers.setdefault(record.partition, {}), record.key, record.value)
            if records or any(consumer.position(each) > position for each, position in left.items()):
                continue
            if not is_looked_behind:
                ends |= _behind_last_that_matters(settings, left, ends, matters, patience)
                is_looked_behind = True
            else:
                patience.check(next(iter(left)))
        offsets.update({each.partition: consumer.position(each) for each in ends})
    return MarkersRead(markers, offsets)


def _note(markers: dict[MarkerName, Marker], key: bytes | None, value: bytes | None) -> None:
    pair = decoded(key, value)
    if pair is not None and pair[1] is not None:
        markers[pair[0]] = pair[1]
    elif pair is not None:
        markers.pop(pair[0], None)


def _behind_last_that_matters(
    settings: Mapping[str, str],
    begins: Offsets,
    ends: Offsets,
    matters: Callable[[MarkerName], bool],
    patience: "_Patience",
) -> Offsets:
    """Up to where it has to be known which records are committed: behind the last of a name that matters."""
    found = dict(begins)
    with Consumer({**settings, **_OWN, "isolation.level": "read_uncommitted"}) as consumer:
        consumer.assign(begins)
        for each, position in begins.items():
            consumer.seek(each, position)
        while any(consumer.position(each) < ends[each] for each in begins):
            records = consumer.poll(_POLL_MS)
            if not records:
                patience.check(next(iter(begins)))
            for record in records:
                pair = decoded(record.key, record.value)
                place = TopicPartition(record.topic, record.partition)
                if pair is not None and matters(pair[0]) and record.offset < ends[place]:
                    found[place] = record.offset + 1
    return found


class _Patience:
    """With somebody else's open transaction. Threads: one."""

    def __init__(self, settings: Mapping[str, str], timeout_ms: float) -> None:
        self._settings: Final = settings
        self._began_s: Final = time.monotonic()
        self._limit_ms = timeout_ms
        self._is_warned = False

    def check(self, place: TopicPartition) -> None:
        """Raises KafkaTimeoutError when it is at an end."""
        waited_ms = (time.monotonic() - self._began_s) * 1000
        if waited_ms <= self._limit_ms:
            return
        what = f"an open transaction holds back markers in {place.topic}-{place.partition}"
        if self._is_warned:
            raise KafkaTimeoutError(f"{what} for {waited_ms:.0f} ms: `kavka transactions find-hanging` may show it")
        self._is_warned = True
        self._limit_ms = max(self._limit_ms, _longest_ms(self._settings) + _SLACK_MS)
        log.warning("%s for %d ms: its end is waited for, up to %d ms", what, waited_ms, self._limit_ms)


def _longest_ms(settings: Mapping[str, str]) -> int:
    """How long brokers let a transaction be open."""
    try:
        with Admin(settings) as admin:
            resources = [ConfigResource.broker(node.id) for node in admin.describe_cluster().nodes]
            found = admin.describe_configs(resources, names=[_LONGEST_SETTING]).values()
        return max((int(each[_LONGEST_SETTING].value or _LONGEST_MS) for each in found), default=_LONGEST_MS)
    except (KafkaError, KeyError, ValueError) as error:
        log.debug("%s is not known: %s", _LONGEST_SETTING, error)
        return _LONGEST_MS
