"""The defaults that differ from Kafka's, all in one place, each with its reason."""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    value: object
    reason: str


KAVKA_DEFAULTS: Final = {
    "num.network.threads": Difference(
        1, "measured: one loop feeds the I/O threads; more only hand the interpreter around"
    ),
    "num.io.threads": Difference(
        2, "measured: a second thread overlaps system calls; beyond that they wait for each other"
    ),
    "log.dir": Difference(
        "/tmp/kavka-logs", "a Kafka beside it, with its own default /tmp/kafka-logs, stays untouched"
    ),
    "group.coordinator.rebalance.protocols": Difference(
        ("classic", "consumer"), "both group protocols work without a setting (KIP-848)"
    ),
    "group.consumer.migration.policy": Difference("bidirectional", "a group may move between the protocols (KIP-848)"),
}
