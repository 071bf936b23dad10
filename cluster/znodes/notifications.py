"""The notices that brokers leave for the controller; it removes them when read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kavka.cluster.znodes.json_data import Fields, encode_json


class IsrChange:
    """`/isr_change_notification/isr_change_NNNNNNNNNN`: partitions whose leader wrote a new ISR (before KIP-497)."""

    PARENT: Final = "/isr_change_notification"
    PREFIX: Final = "/isr_change_notification/isr_change_"

    @staticmethod
    def encode(partitions: Sequence[tuple[str, int]]) -> bytes:
        return encode_json(
            {"version": 1, "partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions]}
        )

    @staticmethod
    def decode(name: str, data: bytes) -> list[tuple[str, int]]:
        fields = Fields.parse(f"{IsrChange.PARENT}/{name}", data)
        return [(each.text("topic"), each.integer("partition")) for each in fields.objects("partitions")]


class LogDirEvent:
    """`/log_dir_event_notification/log_dir_event_NNNNNNNNNN`: a broker lost a log directory."""

    PARENT: Final = "/log_dir_event_notification"
    PREFIX: Final = "/log_dir_event_notification/log_dir_event_"

    @staticmethod
    def encode(broker_id: int) -> bytes:
        return encode_json({"version": 1, "broker": broker_id, "event": 1})

    @staticmethod
    def decode(name: str, data: bytes) -> int:
        """The broker's id."""
        return Fields.parse(f"{LogDirEvent.PARENT}/{name}", data).integer("broker")
