"""How far dead letters were sent again, beside the group's offsets: a group without members forgets these after a week
(`offsets.retention.minutes`), and letters are there for good."""

from collections.abc import Collection, Mapping
from typing import Final

from kavka.client import Producer
from kavka.pipeline.sending.marker_reading import NOTHING_READ, read_markers
from kavka.pipeline.sending.markers import Marker, MarkerName, MarkerPlace
from kavka.protocol.schema import ZERO_UUID, Uuid

_TIMEOUT_MS: Final = 120_000


class RetriedLetters:
    """Markers of a topic of letters, one a partition. One made anew under its name has others. Threads: one."""

    def __init__(self, place: MarkerPlace, topic: str, topic_id: Uuid) -> None:
        self._place: Final = place
        self._topic: Final = topic
        self._query: Final = f"retried-{topic_id.hex()}"
        self._is_told_apart: Final = topic_id != ZERO_UUID
        """Else a former topic's markers would have letters passed over."""

    def positions(self, partitions: Collection[int]) -> dict[int, int]:
        """The next letter of each, where some were looked at. Raises KafkaError."""
        names = {partition: self._name(partition) for partition in partitions if self._is_told_apart}
        if not names:
            return {}
        found = read_markers(self._place, NOTHING_READ, _TIMEOUT_MS, set(names.values()).__contains__)
        markers = {partition: found.furthest(name) for partition, name in names.items()}
        return {partition: marker.position for partition, marker in markers.items() if marker is not None}

    def send(self, producer: Producer, positions: Mapping[int, int]) -> None:
        """As a part of the producer's transaction."""
        place = self._place
        for partition, position in positions.items():
            name = self._name(partition)
            producer.send(place.topic, Marker(0, position).encode(), name.encode(), place.partition_of(name))

    def _name(self, partition: int) -> MarkerName:
        return MarkerName(self._query, self._topic, partition)
