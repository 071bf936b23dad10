"""Clients that come by IPv6: served, and told the address that they came by or the one that is advertised."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kavka.broker.server import Broker
from kavka.config.sources import load_config
from tests.support.processes import free_port

TIMEOUT_S = 60.0
TIMEOUT_MS = 60_000


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has one family only")


@contextmanager
def serving(directory: Path, *settings: str) -> Iterator[int]:
    """A broker in this process; the port of its first listener."""
    broker = Broker(load_config(None, [f"log.dirs={directory}", *settings], {}).config)
    broker.start()
    try:
        yield int(broker.endpoints_text().partition(",")[0].rpartition(":")[2])
    finally:
        broker.stop()


def sent_and_read(bootstrap: str, topic: str) -> tuple[list[bytes], set[str]]:
    """What a consumer reads of what a producer sends, and the hosts that the consumer is told of."""
    with closing(KafkaProducer(bootstrap_servers=bootstrap, max_block_ms=TIMEOUT_MS)) as producer:
        for number in range(3):
            producer.send(topic, b"%d" % number).get(TIMEOUT_S)
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=TIMEOUT_MS
    )
    with closing(consumer):
        values = [next(consumer).value for _ in range(3)]
        return values, {broker.host for broker in consumer._client.cluster.brokers()}


def test_a_listener_on_an_ipv6_address_serves_and_advertises_it(tmp_path: Path) -> None:
    with serving(tmp_path, "listeners=PLAINTEXT://[::1]:0") as port:
        assert sent_and_read(f"[::1]:{port}", "visits") == ([b"0", b"1", b"2"], {"::1"})


def test_a_listener_on_all_addresses_tells_each_client_the_one_that_it_came_by(tmp_path: Path) -> None:
    with serving(tmp_path, "listeners=PLAINTEXT://:0") as port:
        assert sent_and_read(f"[::1]:{port}", "by-six") == ([b"0", b"1", b"2"], {"::1"})
        assert sent_and_read(f"127.0.0.1:{port}", "by-four") == ([b"0", b"1", b"2"], {"127.0.0.1"})


def test_an_ipv6_address_that_is_advertised_is_what_clients_are_told(tmp_path: Path) -> None:
    port = free_port()
    listeners = (f"listeners=PLAINTEXT://:{port}", f"advertised.listeners=PLAINTEXT://[::1]:{port}")
    with serving(tmp_path, *listeners):
        assert sent_and_read(f"127.0.0.1:{port}", "visits") == ([b"0", b"1", b"2"], {"::1"})
