"""Identity, the registry, the controller, and how topics come into being."""

from __future__ import annotations

from kavka.config.checks import NOT_NEGATIVE, POSITIVE, Release
from kavka.config.setting import Settings, setting
from kavka.config.values import BOOLEAN, CLUSTER_WIDE, HIGH, INT, LONG, MEDIUM, STRING


class ClusterSettings(Settings):
    """Identity, the registry, the controller, and how topics come into being."""

    broker_id: int = setting(
        "broker.id",
        INT,
        -1,
        "The broker's number in its cluster; -1: one is chosen at the first start and kept.",
        importance=HIGH,
    )
    node_id: int = setting("node.id", INT, -1, "Another name for broker.id.", importance=HIGH)
    broker_id_generation_enable: bool = setting(
        "broker.id.generation.enable", BOOLEAN, True, "Whether a broker without a number gets one.", importance=MEDIUM
    )
    reserved_broker_max_id: int = setting(
        "reserved.broker.max.id",
        INT,
        1000,
        "The largest number to set by hand; chosen ones lie above.",
        check=NOT_NEGATIVE,
        importance=MEDIUM,
    )
    broker_rack: str | None = setting(
        "broker.rack", STRING, None, "The rack or zone; replicas are spread over racks.", importance=MEDIUM
    )
    inter_broker_protocol_version: str = setting(
        "inter.broker.protocol.version",
        STRING,
        "3.9-IV0",
        "The version by which brokers talk to each other, for clusters that still have older brokers.",
        check=Release(),
        importance=MEDIUM,
    )
    zookeeper_connect: str | None = setting(
        "zookeeper.connect",
        STRING,
        None,
        (
            "The ZooKeeper servers, host:port separated by commas, and a root path. Unset: this one broker keeps "
            "the cluster's state itself."
        ),
        importance=HIGH,
    )
    zookeeper_connection_timeout_ms: int = setting(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        "How long connecting to ZooKeeper may take. Unset: zookeeper.session.timeout.ms.",
        importance=HIGH,
    )
    zookeeper_session_timeout_ms: int = setting(
        "zookeeper.session.timeout.ms",
        INT,
        18000,
        "How long ZooKeeper waits for a sign of life before it ends the broker's session.",
        importance=HIGH,
    )
    zookeeper_max_in_flight_requests: int = setting(
        "zookeeper.max.in.flight.requests",
        INT,
        10,
        "Requests to ZooKeeper that may be unanswered.",
        check=POSITIVE,
        importance=HIGH,
    )
    zookeeper_set_acl: bool = setting(
        "zookeeper.set.acl",
        BOOLEAN,
        False,
        "Whether znodes are created so that only brokers may write them.",
        importance=HIGH,
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether a topic is created when a client asks for one that does not exist.",
        importance=HIGH,
    )
    delete_topic_enable: bool = setting(
        "delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted.", importance=HIGH
    )
    num_partitions: int = setting(
        "num.partitions", INT, 1, "Partitions of a topic created without a count.", check=POSITIVE, importance=MEDIUM
    )
    default_replication_factor: int = setting(
        "default.replication.factor", INT, 1, "Replicas of a topic created without a count.", importance=MEDIUM
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        INT,
        1,
        "In-sync replicas that a write with acks=all needs.",
        check=POSITIVE,
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    unclean_leader_election_enable: bool = setting(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether a replica that is behind may lead when no other is left, at the price of losing messages.",
        scope=CLUSTER_WIDE,
        importance=HIGH,
    )
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Whether leadership goes back to the preferred replicas by itself.",
        importance=HIGH,
    )
    leader_imbalance_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the balance of leaders is looked at.",
        check=POSITIVE,
        importance=HIGH,
    )
    leader_imbalance_per_broker_percentage: int = setting(
        "leader.imbalance.per.broker.percentage",
        INT,
        10,
        "The imbalance a broker may have before leaders are moved back.",
        importance=HIGH,
    )
    controlled_shutdown_enable: bool = setting(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a stopping broker hands over its partitions first.",
        importance=MEDIUM,
    )
    controlled_shutdown_max_retries: int = setting(
        "controlled.shutdown.max.retries", INT, 3, "How often handing over is tried.", importance=MEDIUM
    )
    controlled_shutdown_retry_backoff_ms: int = setting(
        "controlled.shutdown.retry.backoff.ms", LONG, 5000, "The pause between two tries.", importance=MEDIUM
    )
    controller_socket_timeout_ms: int = setting(
        "controller.socket.timeout.ms",
        INT,
        30000,
        "How long the controller waits for a broker's answer.",
        importance=MEDIUM,
    )
