"""A group's own settings: set by Kafka's tool, told to members by the next heartbeat, there after a restart."""

from pathlib import Path

import pytest

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import Wire, create_topic

GROUP = "readers"
VERSION = 1
# The member beats between tools that a busy machine keeps busy for longer than a session is by default.
PATIENT = {"group.consumer.max.session.timeout.ms": "600000", "group.consumer.session.timeout.ms": "600000"}


class Member:
    """One member of a consumer group, over a connection of its own."""

    def __init__(self, broker: KavkaProcess) -> None:
        self._broker = broker
        self._epoch = 0

    def heartbeat_interval_ms(self) -> int:
        """What the answer to a heartbeat says; the coordinator may still be loading after a restart."""
        return wait_until(self._beat, 60, "no heartbeat is answered")

    def _beat(self) -> int | None:
        request = ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id="member", member_epoch=self._epoch)
        if not self._epoch:
            request.rebalance_timeout_ms = 30_000
            request.subscribed_topic_names = ["visits"]
            request.topic_partitions = []
        with Wire(self._broker.host, self._broker.port) as wire:
            wire.send(request, VERSION)
            answer = wire.answer(request, VERSION)
            if answer.error_code == ErrorCode.NOT_COORDINATOR:
                # The first who asks for a coordinator has its topic created.
                asked = FindCoordinatorRequest(key=GROUP)
                wire.send(asked, 0)
                wire.answer(asked, 0)
        if answer.error_code:
            return None
        self._epoch = answer.member_epoch
        interval_ms: int = answer.heartbeat_interval_ms
        return interval_ms


@pytest.mark.java
@pytest.mark.slow
def test_a_groups_settings_are_set_listed_told_to_members_and_kept(tmp_path: Path) -> None:
    with KavkaProcess(tmp_path, PATIENT) as broker, JavaTools("kafka-4.3") as tools:
        with Wire(broker.host, broker.port) as wire:
            create_topic(wire, "visits")
        member = Member(broker)

        def configs(*arguments: str) -> str:
            return tools.run(
                "kafka.admin.ConfigCommand",
                "--bootstrap-server",
                broker.bootstrap,
                "--entity-type",
                "groups",
                *arguments,
            )

        before_ms = member.heartbeat_interval_ms()
        limit_ms = 15_000
        assert before_ms != limit_ms

        configs("--entity-name", GROUP, "--alter", "--add-config", f"consumer.heartbeat.interval.ms={limit_ms}")

        assert member.heartbeat_interval_ms() == limit_ms
        assert f"consumer.heartbeat.interval.ms={limit_ms}" in configs("--entity-name", GROUP, "--describe")
        # Without a name: the groups that are there, and those that have settings.
        configs("--entity-name", "others", "--alter", "--add-config", "consumer.session.timeout.ms=50000")
        everything = configs("--describe")
        assert f"configs for group {GROUP} are" in everything.lower()
        assert "consumer.session.timeout.ms=50000" in everything

        broker.stop()
        broker.start()

        assert member.heartbeat_interval_ms() == limit_ms
        configs("--entity-name", GROUP, "--alter", "--delete-config", "consumer.heartbeat.interval.ms")
        assert member.heartbeat_interval_ms() == before_ms
