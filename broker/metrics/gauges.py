"""The values that are read when somebody asks: partitions, logs, the cluster, queues. Names as in docs/metrics.md.

Not here: the idle shares of threads, which are counted (`exposition.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kavka.broker.coordination.gauges import register_coordination_gauges
from kavka.broker.metadata.metadata_cache import PartitionMetadata
from kavka.broker.metrics.cleaner_gauges import register_cleaner_gauges
from kavka.broker.metrics.group_gauges import register_group_gauges
from kavka.broker.metrics.registry import Labels, Metrics

if TYPE_CHECKING:
    from kavka.broker.partitions.partition import Partition
    from kavka.broker.security.listener_transports import ListenerTransports
    from kavka.broker.services import Services
    from kavka.storage.partition_log import PartitionLog

Reading = tuple[Labels, float]


def register_broker_state(metrics: Metrics, read: Callable[[], int]) -> None:
    """Register where the broker is between its start and its end. Called once."""
    metrics.gauge("kafka_server_kafkaserver_brokerstate", "1 starting, 3 running, 6 handing over, 7 stopping.", read)


def register_gauges(
    metrics: Metrics,
    services: "Services",
    *,
    request_queue_size: Callable[[], int],
    connection_count: Callable[[], int],
    transports: "Sequence[ListenerTransports]",
) -> None:
    """Register everything that can be read from a broker's services. Called once, when they are there."""
    metrics.gauge(
        "kafka_network_requestchannel_requestqueuesize", "Requests that wait for an I/O thread.", request_queue_size
    )
    metrics.gauge("kafka_server_socket_server_metrics_connection_count", "Open connections.", connection_count)
    metrics.gauge(
        "kavka_tls_certificate_seconds_to_expiry",
        "Until the first certificate of a listener with TLS expires.",
        lambda: [reading for each in transports for reading in each.seconds_to_expiry()],
    )
    metrics.gauge(
        "kafka_server_socket_server_metrics_connections",
        "Open connections with TLS.",
        lambda: [reading for each in transports for reading in each.connections()],
    )
    metrics.gauge(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Operations that wait: long polls, acks=all, topic creation.",
        lambda: services.purgatory.size,
    )
    _replica_gauges(metrics, services)
    _controller_gauges(metrics, services)
    _log_gauges(metrics, services)
    register_cleaner_gauges(metrics, services.cleaner, services.now_ms)
    register_group_gauges(metrics, services)
    register_coordination_gauges(metrics, "group", services.groups)
    register_coordination_gauges(metrics, "transaction", services.transactions)
    _exporter_gauges(metrics, services)


def _replica_gauges(metrics: Metrics, services: "Services") -> None:
    replicas = services.replicas
    for name, text, read in (
        ("partitioncount", "Partitions on this broker.", lambda: len(replicas.partitions)),
        ("leadercount", "Partitions that this broker leads.", lambda: replicas.leader_count),
        ("offlinereplicacount", "Partitions in failed log directories.", lambda: replicas.offline_count),
        (
            "underreplicatedpartitions",
            "Led partitions with fewer in-sync replicas than replicas.",
            lambda: replicas.under_replicated_count,
        ),
        (
            "underminisrpartitioncount",
            "Led partitions with fewer in-sync replicas than min.insync.replicas.",
            lambda: sum(map(_is_under_min_isr, list(replicas.partitions.values()))),
        ),
        (
            "atminisrpartitioncount",
            "Led partitions with as many in-sync replicas as min.insync.replicas asks for.",
            lambda: sum(map(_is_at_min_isr, list(replicas.partitions.values()))),
        ),
        (
            "reassigningpartitions",
            "Led partitions that are on the move to other brokers.",
            lambda: sum(each.role.is_leader and each.role.is_moving for each in list(replicas.partitions.values())),
        ),
    ):
        metrics.gauge(f"kafka_server_replicamanager_{name}", text, read)
    moves, name = services.replica_moves, "kafka_server_replicaalterlogdirsmanager"
    metrics.gauge(
        f"{name}_maxlag", "Records that the copy lags that lags most, in another log directory.", lambda: moves.max_lag
    )
    metrics.gauge(f"{name}_failedpartitionscount", "Copies that met an error.", lambda: moves.failed_count)

    def of_each(read: Callable[["Partition"], int]) -> Callable[[], Iterator[Reading]]:
        return lambda: (
            ({"topic": each.topic, "partition": str(each.index)}, float(read(each)))
            for each in list(replicas.partitions.values())
        )

    for name, text, read_one in (
        ("replicascount", "Replicas, if it is led here.", lambda each: len(each.role.replicas)),
        ("insyncreplicascount", "In-sync replicas, if it is led here.", lambda each: len(each.role.isr)),
        (
            "underreplicated",
            "1 if it is led here and replicas are not in sync.",
            lambda each: each.role.is_under_replicated,
        ),
        ("underminisr", "1 if it is led here with fewer in-sync replicas than min.insync.replicas.", _is_under_min_isr),
        ("atminisr", "1 if it is led here with just as many as min.insync.replicas.", _is_at_min_isr),
    ):
        metrics.gauge(f"kafka_cluster_partition_{name}", text, of_each(read_one))
    metrics.gauge(
        "kafka_log_logmanager_offlinelogdirectorycount",
        "Log directories that have failed.",
        lambda: sum(each.failure is not None for each in services.logs.directories.all),
    )


def _controller_gauges(metrics: Metrics, services: "Services") -> None:
    controller, metadata = services.controller, services.metadata

    def partitions() -> Iterator[PartitionMetadata]:
        return (partition for topic in list(metadata.current.topics.values()) for partition in topic)

    def while_active(read: Callable[[], int]) -> Callable[[], int]:
        return lambda: read() if controller.is_active else 0

    for name, text, read in (
        ("activecontrollercount", "1 on the broker that is the controller.", lambda: 1),
        ("globaltopiccount", "Topics of the cluster.", lambda: len(metadata.current.topics)),
        (
            "globalpartitioncount",
            "Partitions of the cluster.",
            lambda: sum(map(len, list(metadata.current.topics.values()))),
        ),
        (
            "offlinepartitionscount",
            "Partitions without a leader.",
            lambda: sum(each.leader not in metadata.current.brokers for each in partitions()),
        ),
        (
            "preferredreplicaimbalancecount",
            "Partitions not led by their first replica.",
            lambda: sum(each.replicas[:1] != (each.leader,) for each in partitions()),
        ),
        ("activebrokercount", "Brokers that are registered.", lambda: controller.stats().brokers),
        ("topicstodeletecount", "Topics that are being deleted.", lambda: controller.stats().deleting_topics),
        (
            "topicsineligibletodeletecount",
            "Of these, those that wait for a broker or a disk.",
            lambda: controller.stats().waiting_deletions,
        ),
        (
            "replicastodeletecount",
            "Replicas of them that are there still.",
            lambda: controller.stats().deleting_replicas,
        ),
    ):
        metrics.gauge(f"kafka_controller_kafkacontroller_{name}", text, while_active(read))
    metrics.gauge(
        "kafka_controller_controllereventmanager_eventqueuesize",
        "What waits for the controller's thread.",
        while_active(lambda: controller.stats().queued_events),
    )
    metrics.gauge(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders that this controller has elected from outside the ISR.",
        lambda: controller.stats().unclean_elections,
        "counter",
    )


def _log_gauges(metrics: Metrics, services: "Services") -> None:
    def of_logs(read: Callable[["PartitionLog"], int]) -> Callable[[], Iterator[Reading]]:
        return lambda: (
            ({"topic": log.topic, "partition": str(log.partition)}, float(read(log)))
            for log in services.logs.all_logs()
        )

    metrics.gauge("kafka_log_log_size", "Bytes of the log.", of_logs(lambda log: log.size_bytes))
    metrics.gauge("kafka_log_log_logendoffset", "The next offset.", of_logs(lambda log: log.log_end_offset))
    metrics.gauge("kafka_log_log_logstartoffset", "The first offset.", of_logs(lambda log: log.log_start_offset))
    metrics.gauge("kafka_log_log_numlogsegments", "Segments of the log.", of_logs(lambda log: log.segment_count))


def _exporter_gauges(metrics: Metrics, services: "Services") -> None:
    """What kafka_exporter shows, served by the broker itself."""
    metadata = services.metadata

    def of_led(read: Callable[["Partition", "PartitionLog"], int]) -> Callable[[], Iterator[Reading]]:
        return lambda: (
            ({"topic": each.topic, "partition": str(each.index)}, float(read(each, log)))
            for each in list(services.replicas.partitions.values())
            if each.role.is_leader and (log := each.log) is not None
        )

    def of_known(read: Callable[[PartitionMetadata], int]) -> Callable[[], Iterator[Reading]]:
        return lambda: (
            ({"topic": topic.name, "partition": str(each.partition_index)}, float(read(each)))
            for topic in list(metadata.current.topics.values())
            for each in topic
        )

    metrics.gauge("kafka_brokers", "Live brokers.", lambda: len(metadata.current.brokers))
    metrics.gauge(
        "kafka_topic_partitions",
        "Partitions of the topic.",
        lambda: (({"topic": topic.name}, float(len(topic))) for topic in list(metadata.current.topics.values())),
    )
    for name, text, read_led in (
        ("current_offset", "The high watermark.", lambda _, log: log.high_watermark),
        ("oldest_offset", "The first offset.", lambda _, log: log.log_start_offset),
    ):
        metrics.gauge(f"kafka_topic_partition_{name}", text, of_led(read_led))
    metrics.gauge("kafka_topic_partition_leader", "The leader's broker id.", of_known(lambda each: each.leader))
    metrics.gauge("kafka_topic_partition_replicas", "Replicas.", of_known(lambda each: len(each.replicas)))
    metrics.gauge("kafka_topic_partition_in_sync_replica", "In-sync replicas.", of_known(lambda each: len(each.isr)))
    metrics.gauge(
        "kafka_topic_partition_under_replicated_partition",
        "1 if not all replicas are in sync.",
        of_known(lambda each: int(len(each.isr) < len(each.replicas))),
    )


def _is_under_min_isr(partition: "Partition") -> bool:
    return partition.role.is_leader and partition.is_under_min_isr


def _is_at_min_isr(partition: "Partition") -> bool:
    role, own = partition.role, partition.log
    if own is None or not role.is_leader:
        return False
    return len(role.isr) == role.effective_min_isr(own.config.min_insync_replicas)
