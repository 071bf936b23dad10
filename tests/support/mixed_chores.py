"""What administrators ask of a cluster of Kavka and Apache Kafka, whoever is the controller: done, and seen by all."""

from functools import partial

from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest
from kavka.protocol.messages.init_producer_id import InitProducerIdRequest
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.process_cluster import TIMEOUT_S, ProcessCluster
from tests.support.processes import wait_until
from tests.support.wire import BROKER, EARLIEST, LATEST, TOPIC

RECORDS = 20
DELETED = 15


def do_chores(cluster: ProcessCluster, name: str, first: int) -> None:
    """A topic led by `first` is made, written to, cut at its front, configured and deleted; names and ids are given."""
    cluster.create(name, 1, first=first)
    _write_and_cut(cluster, name, first)
    _configure(cluster, name)
    delete(cluster, name)
    _create_by_asking(cluster, f"{name}.wanted", first)
    ids = [_producer_id(cluster, each) for each in sorted(cluster.running)]
    assert len(set(ids)) == len(ids)


def _write_and_cut(cluster: ProcessCluster, name: str, leader: int) -> None:
    with cluster.client(leader) as client:
        for number in range(RECORDS):
            assert client.produce(name, b"%d" % number, acks=-1, timeout_ms=60_000).error_code == ErrorCode.NONE
        asked = DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition_index=0, offset=DELETED)])
        # Answered when all replicas have cut.
        (answer,) = client.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=60_000), 2).topics
        (part,) = answer.partitions
        assert (part.error_code, part.low_watermark) == (ErrorCode.NONE, DELETED)
        assert (client.offset(name, EARLIEST), client.offset(name, LATEST)) == (DELETED, RECORDS)


def _configure(cluster: ProcessCluster, name: str) -> None:
    """By every broker in turn: it writes into ZooKeeper itself, and all hear of it."""
    for broker_id in sorted(cluster.running):
        retention = str(86_400_000 + broker_id)
        with cluster.client(broker_id) as client:
            for kind, resource, setting in (
                (TOPIC, name, "retention.ms"),
                (BROKER, "", "log.retention.ms"),
            ):
                answer = client.alter(kind, resource, [(setting, retention)])
                assert answer.error_code == ErrorCode.NONE, answer
        for each in cluster.running:
            for kind, resource, setting in (
                (TOPIC, name, "retention.ms"),
                (BROKER, str(each), "log.retention.ms"),
            ):
                wait_until(
                    partial(_is_set, cluster, each, kind, resource, setting, retention),
                    TIMEOUT_S,
                    f"{each} does not hear of {setting} of {resource}, set by {broker_id}",
                )


def _is_set(cluster: ProcessCluster, broker_id: int, kind: int, resource: str, setting: str, value: str) -> bool:
    with cluster.client(broker_id) as client:
        return client.describe(kind, resource)[setting] == value


def delete(cluster: ProcessCluster, name: str) -> None:
    """Delete a topic of one partition, and see it go."""
    begin_to_delete(cluster, name)
    wait_until_deleted(cluster, name)


def begin_to_delete(cluster: ProcessCluster, name: str) -> None:
    (answer,) = cluster.ask_controller(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5).responses
    assert answer.error_code == ErrorCode.NONE, answer


def wait_until_deleted(cluster: ProcessCluster, name: str) -> None:
    """Until no broker that runs knows it, or has its log."""
    folders = [cluster.brokers[each].log_dir / f"{name}-0" for each in cluster.running]
    wait_until(
        lambda: not any(folder.exists() for folder in folders),
        TIMEOUT_S,
        lambda: f"left: {[folder for folder in folders if folder.exists()]}",
    )
    wait_until(
        lambda: not any(cluster.told(name, each) for each in cluster.running), TIMEOUT_S, f"{name} is still known"
    )


def _create_by_asking(cluster: ProcessCluster, name: str, broker_id: int) -> None:
    """As a client's Metadata request has it made; where nobody is the controller for it, it goes by ZooKeeper."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)

    def is_known() -> bool:
        cluster.ask(broker_id, request, 8)
        return bool(cluster.told(name, broker_id))

    wait_until(is_known, TIMEOUT_S, f"{name} is not made")
    cluster.wait_in_sync(name)
    delete(cluster, name)


def _producer_id(cluster: ProcessCluster, broker_id: int) -> int:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    def given() -> tuple[int] | None:
        answer = cluster.ask(broker_id, request, 4)
        return (answer.producer_id,) if answer.error_code == ErrorCode.NONE else None

    return wait_until(given, TIMEOUT_S, f"{broker_id} gives no producer id")[0]
