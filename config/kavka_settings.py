"""Settings that Kafka does not have."""

from __future__ import annotations

from kavka.config.checks import OneOf, at_least, between
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, INT, MEDIUM, PASSWORD, STRING, Password


class KavkaSettings(Settings):
    """Metrics over HTTP, how closely records are looked at, faults on demand, and the login at ZooKeeper."""

    metrics_port: int = setting(
        "metrics.port",
        INT,
        -1,
        "The port of /metrics (Prometheus) and /healthz; 0: any free port, said in the log; -1: neither is served.",
        check=between(-1, 65535),
        importance=MEDIUM,
    )
    metrics_host: str = setting(
        "metrics.host", STRING, "", "The address /metrics and /healthz are served on; empty: every interface."
    )
    kavka_validate_records: str = setting(
        "kavka.validate.records",
        STRING,
        "header",
        "What is checked of a batch that is appended: its header and CRC (header), or each record in it too (all).",
        check=OneOf("header", "all"),
        importance=MEDIUM,
    )
    kavka_faults_enable: bool = setting(
        "kavka.faults.enable",
        BOOLEAN,
        False,
        "Whether faults can be asked for, for tests of clients (docs/testing.md). Never in production: requests go a "
        "longer way then, and who has the token can do what it likes. The broker prints where, and the token.",
    )
    kavka_faults_port: int = setting(
        "kavka.faults.port",
        INT,
        0,
        "Where faults are asked for over HTTP, on 127.0.0.1 alone, with kavka.faults.enable; 0: any free port.",
        check=between(0, 65535),
    )
    kavka_authentication_timeout_ms: int = setting(
        "kavka.authentication.timeout.ms",
        INT,
        30_000,
        "How long a client of a listener with TLS or SASL may take to authenticate, before it is closed.",
        check=at_least(100),
        importance=MEDIUM,
    )
    kavka_zookeeper_digest: Password | None = setting(
        "kavka.zookeeper.digest",
        PASSWORD,
        None,
        "The login at ZooKeeper, user:password, for its digest scheme (where Kafka has a JAAS file, for SASL).",
        importance=MEDIUM,
    )
