"""Every setting that can change at run time is changed, described and followed, before a restart and after it."""

import threading
from pathlib import Path
from typing import Any

from kavka.config.broker_config import BrokerConfig
from kavka.config.topic_config import topic_rows
from kavka.config.values import Source
from kavka.protocol.errors import ErrorCode
from tests.support.probe import answers
from tests.support.processes import free_port, wait_until
from tests.support.running_broker import BROKER_ID, HOST, RunningBroker, threads
from tests.support.wire import TOPIC, RawClient

VALUES = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "max.connections": "100",
    "max.connections.per.ip": "90",
    "max.connections.per.ip.overrides": "127.0.0.1:80",
    "max.connection.creation.rate": "1000",
    "log.segment.bytes": "1000000",
    "log.roll.ms": "3600000",
    "log.roll.jitter.ms": "1000",
    "log.index.size.max.bytes": "1000000",
    "log.index.interval.bytes": "1000",
    "log.flush.interval.messages": "500",
    "log.flush.interval.ms": "5000",
    "log.retention.ms": "86400000",
    "log.retention.bytes": "1000000000",
    "log.segment.delete.delay.ms": "1000",
    "log.cleanup.policy": "compact",
    "log.message.downconversion.enable": "false",
    "log.message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.before.max.ms": "1000000",
    "log.message.timestamp.after.max.ms": "2000000",
    "log.message.timestamp.difference.max.ms": "3000000",
    "message.max.bytes": "100000",
    "compression.type": "zstd",
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "compression.zstd.level": "5",
    "num.recovery.threads.per.data.dir": "2",
    "background.threads": "5",
    "producer.id.expiration.ms": "1000000",
    "log.cleaner.threads": "2",
    "log.cleaner.io.max.bytes.per.second": "1000000.0",
    "log.cleaner.dedupe.buffer.size": "64000000",
    "log.cleaner.io.buffer.size": "100000",
    "log.cleaner.io.buffer.load.factor": "0.8",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.7",
    "log.cleaner.delete.retention.ms": "1000",
    "log.cleaner.min.compaction.lag.ms": "1000",
    "log.cleaner.max.compaction.lag.ms": "100000",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "true",
    "transaction.partition.verification.enable": "false",
    "num.replica.fetchers": "2",
    "leader.replication.throttled.rate": "1000000",
    "follower.replication.throttled.rate": "1000000",
    "replica.alter.log.dirs.io.max.bytes.per.second": "1000000",
}
VALUES |= {
    "ssl.client.auth": "requested",
    "ssl.protocol": "TLSv1.2",
    "ssl.enabled.protocols": "TLSv1.2",
    "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "ssl.endpoint.identification.algorithm": "",
}
OF_LISTENERS = ("ssl.keystore.", "ssl.truststore.", "ssl.key.", "sasl.")
"""These change behind a listener's prefix alone: tests/integration/security has them, and the tests of SASL."""
ADDRESSES = {"listeners", "advertised.listeners"}
"""These name ports, which are found when the test runs."""


def test_every_dynamic_setting_has_another_value_here() -> None:
    dynamic = {row.name: row for row in BrokerConfig.rows() if row.is_dynamic and row.ignored is None}
    dynamic = {name: row for name, row in dynamic.items() if not name.startswith(OF_LISTENERS)}

    assert VALUES.keys() | ADDRESSES == dynamic.keys()
    assert [name for name, text in VALUES.items() if dynamic[name].parse(text) == dynamic[name].default] == []


def test_every_dynamic_setting_is_followed_before_a_restart_and_after_it(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as running:
        port = free_port()
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits")
        changes = {
            **VALUES,
            "listeners": f"PLAINTEXT://{HOST}:{running.port},OTHER://{HOST}:{port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{running.port},OTHER://kavka.example:1",
        }
        assert running.alter(changes).error_code == ErrorCode.NONE

        for _ in range(2):
            described = running.described()
            found = {name: described[name] for name in changes}
            assert found == {name: (text, Source.DYNAMIC_BROKER) for name, text in changes.items()}
            assert_topics_follow(running)
            assert_parts_follow(running)
            assert_endpoints_follow(running)
            assert answers(HOST, port)
            running.restart()

        assert running.alter(dict.fromkeys(changes)).error_code == ErrorCode.NONE
        running.restart()
        assert {source for _, source in running.described().values()} == {Source.STATIC_BROKER, Source.DEFAULT}


def assert_topics_follow(running: RunningBroker) -> None:
    """What a topic without settings of its own is said to have, and what its log was given."""
    described = running.described(TOPIC, "visits")
    log = running.broker.services.logs.get("visits", 0)
    assert log is not None
    for row in topic_rows().values():
        name = row.synonyms[0] if row.synonyms else ""
        if name in VALUES:
            assert described[row.name] == (VALUES[name], Source.DYNAMIC_BROKER), name
            assert log.config.value(row.name) == BrokerConfig({name: VALUES[name]}).value(name), name


def assert_parts_follow(running: RunningBroker) -> None:
    """The parts that are told of settings, looked into where nothing shows outside."""
    names = ("network-", "io-", "log-cleaner-")
    wait_until(lambda: [threads(name) for name in names] == [2, 4, 2], 60, lambda: str(threading.enumerate()))
    broker: Any = running.broker
    limits = broker._sockets.limits.settings
    assert (limits.max_connections, limits.max_per_ip, limits.max_creation_rate) == (100, 90, 1000)
    assert limits.per_ip_overrides == {"127.0.0.1": 80}
    assert broker._scheduler._executor._max_workers == 5
    current = broker.services.config.current
    assert broker.services.cleaner._config is current
    assert broker.services.logs._config is current
    assert broker.services.logs.get("visits", 0).environment.producer_id_expiration_ms == 1_000_000


def assert_endpoints_follow(running: RunningBroker) -> None:
    """The controller hears of them a moment later, and tells the broker."""
    metadata = running.broker.services.metadata

    def known() -> tuple[str, int] | None:
        own = metadata.current.brokers.get(int(BROKER_ID))
        endpoint = None if own is None else own.endpoints.get("OTHER")
        return None if endpoint is None else (endpoint.host, endpoint.port)

    wait_until(lambda: known() == ("kavka.example", 1), 60, lambda: str(known()))
