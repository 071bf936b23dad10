"""Many members at once: one rebalance for those who come together, and everybody has a share."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer

from tests.support.group_members import FAST_GROUPS, feed
from tests.support.group_wire import MEMBER_ID_REQUIRED, WireMember
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.topics import create_topic
from tests.support.wire import Wire

DELAY_MS = 3000
BROKER_SETTINGS = FAST_GROUPS | {"group.initial.rebalance.delay.ms": str(DELAY_MS), "group.max.size": "30"}
MEMBERS = 24
PARTITIONS = 48
GROUP_MAX_SIZE_REACHED = 81
WAIT_S = 180.0


def test_two_dozen_members_share_a_topic_and_read_all_of_it(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    feed(broker, topic, PARTITIONS, 5)

    found = asyncio.run(asyncio.wait_for(_read_together(broker, topic), 2 * WAIT_S))

    assert sorted(found) == sorted((index, offset) for index in range(PARTITIONS) for offset in range(5))


def test_two_dozen_members_of_the_new_protocol_share_a_topic(broker: RunningServer, topic: str) -> None:
    create_topic(broker, topic, partitions=PARTITIONS)
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": f"{topic}.group", "group.protocol": "consumer"}
    members = [Consumer({**settings, "client.id": str(index), "log_level": 3}) for index in range(MEMBERS)]
    deadline = time.monotonic() + WAIT_S
    for member in members:
        member.subscribe([topic])
    shares: list[list[int]] = []
    while time.monotonic() < deadline:
        for member in members:
            member.poll(0.002)
        shares = [[one.partition for one in member.assignment()] for member in members]
        if sorted(index for share in shares for index in share) == list(range(PARTITIONS)) and all(
            len(share) == PARTITIONS // MEMBERS for share in shares
        ):
            break
    for member in members:
        member.close()

    assert sorted(index for share in shares for index in share) == list(range(PARTITIONS))
    assert {len(share) for share in shares} == {PARTITIONS // MEMBERS}


def test_those_who_come_within_the_delay_are_in_the_first_generation(broker: RunningServer, topic: str) -> None:
    with Wire(broker.host, broker.port) as first, Wire(broker.host, broker.port) as second:
        early = WireMember(first, topic, "consumer", {"range": b"\x00\x00"})
        late = WireMember(second, topic, "consumer", {"range": b"\x00\x00"})
        early.wait_for_coordinator()
        early.register()
        late.register()
        with standing_still(broker):
            started_at = time.monotonic()
            early.send_join()
            late.send_join()
        assert (early.joined(), late.joined()) == (0, 0)
        waited_s = time.monotonic() - started_at

    assert (early.generation, late.generation) == (1, 1)
    assert len(early.answer.members) + len(late.answer.members) == 2
    # The second join within the delay prolongs it, up to the rebalance timeout.
    assert waited_s > DELAY_MS / 1000 * 0.9


def test_a_group_takes_no_more_members_than_it_may_have(broker: RunningServer, topic: str) -> None:
    wires = [Wire(broker.host, broker.port) for _ in range(31)]
    try:
        members = [WireMember(wire, topic, "consumer", {"range": b"\x00\x00"}) for wire in wires]
        members[0].wait_for_coordinator()
        for member in members[:30]:
            member.register()
        with standing_still(broker):
            for member in members[:30]:
                member.send_join()
        last = MEMBER_ID_REQUIRED
        while last == MEMBER_ID_REQUIRED:
            members[30].send_join()
            last = members[30].joined()
        # Joins of different connections overtake each other: the one too many need not be the last.
        codes = [*[member.joined() for member in members[:30]], last]
        assert sorted(codes) == [0] * 30 + [GROUP_MAX_SIZE_REACHED]
        assert {member.generation for member, code in zip(members, codes, strict=True) if not code} == {1}
    finally:
        for wire in wires:
            wire.close()


@contextmanager
def standing_still(broker: RunningServer) -> Iterator[None]:
    """What is sent meanwhile has all come when it wakes: however slow we are, nobody is later than the delay."""
    os.kill(broker.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.process.pid, signal.SIGCONT)


async def _read_together(broker: RunningServer, topic: str) -> list[tuple[int, int]]:
    """All members in one loop; what each was given, once all of it was."""
    consumers = [
        AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=f"{topic}.group",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            session_timeout_ms=30_000,
            client_id=f"member-{index}",
        )
        for index in range(MEMBERS)
    ]
    await asyncio.gather(*(consumer.start() for consumer in consumers))
    found: dict[tuple[int, int], int] = {}

    async def read(consumer: Any) -> None:
        while True:
            for partition, records in (await consumer.getmany(timeout_ms=200)).items():
                for record in records:
                    found[partition.partition, record.offset] = found.get((partition.partition, record.offset), 0) + 1

    readers = [asyncio.create_task(read(consumer)) for consumer in consumers]

    def shares() -> list[int]:
        return [len(consumer.assignment()) for consumer in consumers]

    def all_read() -> bool:
        return len(found) >= PARTITIONS * 5 and shares() == [PARTITIONS // MEMBERS] * MEMBERS

    await asyncio.to_thread(wait_until, all_read, WAIT_S, lambda: f"{len(found)} records are read by {shares()}")
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*(consumer.stop() for consumer in consumers))
    return list(found)


pytestmark = pytest.mark.slow
