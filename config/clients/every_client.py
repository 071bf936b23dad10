"""What producers, consumers and administrators have in common: finding the cluster, connections, patience, metrics."""

from __future__ import annotations

from typing import ClassVar

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, OneOf, at_least
from kavka.config.clients.secure import SecureSettings
from kavka.config.setting import setting
from kavka.config.values import HIGH, INT, LIST, LONG, MEDIUM, STRING


class CommonSettings(SecureSettings):
    """Of every client."""

    DOMAIN: ClassVar[str]
    """What Kafka calls the client's kind where it names its metrics."""

    bootstrap_servers: tuple[str, ...] = setting(
        "bootstrap.servers",
        LIST,
        (),
        "host:port addresses, separated by commas, by which the cluster is found; some of its brokers are enough.",
        importance=HIGH,
    )
    client_dns_lookup: str = setting(
        "client.dns.lookup",
        STRING,
        "use_all_dns_ips",
        "Try each address of a name in turn, or make of each bootstrap address a server by its own name.",
        check=OneOf("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        importance=MEDIUM,
    )
    client_id: str = setting(
        "client.id", STRING, "", "By what brokers log and limit this client. Empty: numbered.", importance=MEDIUM
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        540_000,
        "A connection over which nothing was asked for so long is closed; negative: never.",
        importance=MEDIUM,
    )
    metadata_max_age_ms: int = setting(
        "metadata.max.age.ms",
        LONG,
        300_000,
        "Metadata are fetched anew after this time even if nothing seems to have changed.",
        check=NOT_NEGATIVE,
    )
    metadata_recovery_strategy: str = setting(
        "metadata.recovery.strategy",
        STRING,
        "rebootstrap",
        "Begin anew with bootstrap.servers when no known broker can be reached, or do not (KIP-899).",
        check=OneOf("REBOOTSTRAP", "NONE", any_case=True),
    )
    metadata_recovery_rebootstrap_trigger_ms: int = setting(
        "metadata.recovery.rebootstrap.trigger.ms",
        LONG,
        300_000,
        "Begin anew also when no metadata came for so long (KIP-1102).",
        check=NOT_NEGATIVE,
    )
    metrics_num_samples: int = setting(
        "metrics.num.samples", INT, 2, "Windows of time over which averages, maxima and rates go.", check=POSITIVE
    )
    metrics_sample_window_ms: int = setting(
        "metrics.sample.window.ms", LONG, 30_000, "The length of such a window.", check=NOT_NEGATIVE
    )
    receive_buffer_bytes: int = setting(
        "receive.buffer.bytes",
        INT,
        65_536,
        "SO_RCVBUF; -1: as the operating system has it.",
        check=at_least(-1),
        importance=MEDIUM,
    )
    reconnect_backoff_ms: int = setting(
        "reconnect.backoff.ms",
        LONG,
        50,
        "A broker whose connection failed is left alone for so long, twice as long after each further failure.",
        check=NOT_NEGATIVE,
    )
    reconnect_backoff_max_ms: int = setting(
        "reconnect.backoff.max.ms", LONG, 1_000, "The longest that it is left alone.", check=NOT_NEGATIVE
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms",
        INT,
        30_000,
        "How long the answer to a request may take; then its connection is closed, and it may be sent again.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    retry_backoff_ms: int = setting(
        "retry.backoff.ms",
        LONG,
        100,
        "How long to wait before a failed request is sent again; twice as long after each further failure (KIP-580).",
        check=NOT_NEGATIVE,
    )
    retry_backoff_max_ms: int = setting(
        "retry.backoff.max.ms", LONG, 1_000, "The longest such wait.", check=NOT_NEGATIVE
    )
    send_buffer_bytes: int = setting(
        "send.buffer.bytes",
        INT,
        131_072,
        "SO_SNDBUF; -1: as the operating system has it.",
        check=at_least(-1),
        importance=MEDIUM,
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms",
        LONG,
        10_000,
        "How long connecting may take at first, twice as long after each attempt that took too long (KIP-601).",
        importance=MEDIUM,
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30_000,
        "The longest that connecting may take.",
        importance=MEDIUM,
    )
