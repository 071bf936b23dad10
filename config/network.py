"""Listeners, connections, sockets and the request queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, at_least
from kavka.config.setting import Settings, setting
from kavka.config.values import CLUSTER_WIDE, HIGH, INT, INT_MAX, LONG, MEDIUM, PER_BROKER, STRING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kavka.config.listeners import Listener


class NetworkSettings(Settings):
    """Listeners, connections, sockets and the request queue."""

    listeners: tuple[Listener, ...] = setting(
        "listeners",
        STRING,
        "PLAINTEXT://:9092",
        (
            "Where the broker listens: NAME://host:port, separated by commas. An empty host means every "
            "interface, port 0 any free port; IPv6 addresses stand in brackets."
        ),
        scope=PER_BROKER,
        importance=HIGH,
    )
    advertised_listeners: tuple[Listener, ...] = setting(
        "advertised.listeners",
        STRING,
        None,
        (
            "The addresses that clients are told to connect to, for some or all of the listeners. Unset: each "
            "client gets the address by which it reached the broker."
        ),
        scope=PER_BROKER,
        importance=HIGH,
    )
    listener_security_protocol_map: Mapping[str, str] = setting(
        "listener.security.protocol.map",
        STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "The security protocol (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL) of each listener name.",
        scope=PER_BROKER,
    )
    inter_broker_listener_name: str = setting(
        "inter.broker.listener.name",
        STRING,
        None,
        "The listener other brokers connect to. Unset: chosen by security.inter.broker.protocol.",
        importance=MEDIUM,
    )
    control_plane_listener_name: str | None = setting(
        "control.plane.listener.name",
        STRING,
        None,
        "A listener of its own, with its own queue and thread, for requests from the controller.",
        importance=HIGH,
    )
    controller_listener_names: tuple[str, ...] = setting(
        "controller.listener.names",
        STRING,
        None,
        "Listeners of a KRaft controller. Kavka's controller needs none: those named here are not opened.",
        importance=HIGH,
    )
    num_network_threads: int = setting(
        "num.network.threads",
        INT,
        3,
        "Threads that read requests from sockets.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    num_io_threads: int = setting(
        "num.io.threads", INT, 8, "Threads that execute requests.", check=POSITIVE, scope=CLUSTER_WIDE, importance=HIGH
    )
    queued_max_requests: int = setting(
        "queued.max.requests",
        INT,
        500,
        "Connections with requests that wait for an I/O thread; from so many on, none is read further ahead.",
        check=POSITIVE,
        importance=HIGH,
    )
    queued_max_request_bytes: int = setting(
        "queued.max.request.bytes",
        LONG,
        -1,
        "Bytes of requests that may wait before the network threads stop reading; 0 or less: no limit.",
        importance=MEDIUM,
    )
    socket_listen_backlog_size: int = setting(
        "socket.listen.backlog.size",
        INT,
        50,
        "Connections that may wait to be accepted.",
        check=POSITIVE,
        importance=MEDIUM,
    )
    socket_receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes",
        INT,
        102400,
        "SO_RCVBUF of accepted sockets; -1: as the operating system has it.",
        importance=HIGH,
    )
    socket_send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes",
        INT,
        102400,
        "SO_SNDBUF of accepted sockets; -1: as the operating system has it.",
        importance=HIGH,
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes",
        INT,
        104_857_600,
        "The largest request; a longer one closes its connection.",
        check=POSITIVE,
        importance=HIGH,
    )
    max_connections: int = setting(
        "max.connections",
        INT,
        INT_MAX,
        "Connections the broker (or with a listener's prefix, the listener) keeps open at most.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        "Connections from one address at most.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    max_connections_per_ip_overrides: Mapping[str, int] = setting(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "Other limits for some hosts: host:limit, separated by commas.",
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    max_connection_creation_rate: int = setting(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        "New connections a second at most, for the broker or with a prefix for a listener.",
        check=NOT_NEGATIVE,
        scope=CLUSTER_WIDE,
        importance=MEDIUM,
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms",
        LONG,
        600000,
        "A connection over which nothing came or went for so long is closed; negative: never.",
        importance=MEDIUM,
    )
    connection_failed_authentication_delay_ms: int = setting(
        "connection.failed.authentication.delay.ms",
        INT,
        100,
        "How long a failed authentication's answer and close are held back.",
        check=NOT_NEGATIVE,
    )
    request_timeout_ms: int = setting(
        "request.timeout.ms",
        INT,
        30000,
        "How long this broker waits for the answer to a request it sent.",
        importance=HIGH,
    )
    socket_connection_setup_timeout_ms: int = setting(
        "socket.connection.setup.timeout.ms",
        LONG,
        10000,
        "How long a connection that this broker opens may take the first time.",
        importance=MEDIUM,
    )
    socket_connection_setup_timeout_max_ms: int = setting(
        "socket.connection.setup.timeout.max.ms",
        LONG,
        30000,
        "The longest that failed attempts let the connection set-up time grow.",
        importance=MEDIUM,
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "The most one Fetch answer carries, whatever the client asks for; the first batch is always whole.",
        check=at_least(1024),
        importance=MEDIUM,
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Incremental fetch sessions kept (KIP-227).",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        INT,
        2000,
        "Partitions in one DescribeTopicPartitions answer at most.",
        check=POSITIVE,
        importance=MEDIUM,
    )
