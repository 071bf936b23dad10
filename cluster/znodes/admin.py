"""`/admin/reassign_partitions` and `/admin/preferred_replica_election`: wishes that old tools write for the controller.

The controller takes them out when they are done. Newer tools ask it by AlterPartitionReassignments and ElectLeaders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kavka.cluster.znodes.json_data import Fields, ZnodeError, encode_json


class PartitionReassignments:
    """Where partitions shall go. What is left in the node is not done yet."""

    PATH: Final = "/admin/reassign_partitions"

    @staticmethod
    def encode(targets: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
        return encode_json(
            {
                "version": 1,
                "partitions": [
                    {"topic": topic, "partition": partition, "replicas": list(replicas)}
                    for (topic, partition), replicas in targets.items()
                ],
            }
        )

    @staticmethod
    def decode(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
        """The last entry counts where a partition is named twice. No partition goes to no broker."""
        fields = Fields.parse(PartitionReassignments.PATH, data)
        targets = {}
        for each in fields.objects("partitions"):
            replicas = each.integers("replicas")
            if not replicas:
                raise ZnodeError(fields.path, "a partition shall have no replicas")
            targets[each.text("topic"), each.integer("partition")] = replicas
        return targets


class PreferredElections:
    """Partitions that shall be led by their preferred replicas."""

    PATH: Final = "/admin/preferred_replica_election"

    @staticmethod
    def encode(partitions: Sequence[tuple[str, int]]) -> bytes:
        return encode_json(
            {"version": 1, "partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions]}
        )

    @staticmethod
    def decode(data: bytes) -> list[tuple[str, int]]:
        fields = Fields.parse(PreferredElections.PATH, data)
        return list(
            dict.fromkeys((each.text("topic"), each.integer("partition")) for each in fields.objects("partitions"))
        )
