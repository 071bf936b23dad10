"""The defaults that differ from Kafka's, all in one place, each with its reason: name -> (value, reason)."""

from __future__ import annotations

from typing import Final

KAVKA_DEFAULTS: Final[dict[str, tuple[object, str]]] = {
    "num.network.threads": (1, "measured: one loop feeds the I/O threads; more only contend for the GIL"),
    "num.io.threads": (2, "measured: a second thread overlaps system calls; beyond that they wait for each other"),
    "socket.send.buffer.bytes": (-1, "measured: sized by the kernel, a megabyte leaves in one sendfile, not in ten"),
    "socket.receive.buffer.bytes": (-1, "measured: sized by the kernel, large requests cost a fifth less CPU"),
    "log.dir": ("/tmp/kavka-logs", "a Kafka beside it, with its own default /tmp/kafka-logs, stays untouched"),
    "group.coordinator.rebalance.protocols": (
        ("classic", "consumer"),
        "both group protocols work without a setting (KIP-848)",
    ),
    "group.consumer.migration.policy": ("bidirectional", "a group may move between the protocols (KIP-848)"),
}
