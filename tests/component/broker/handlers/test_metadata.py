"""Metadata: which topics, which brokers, which errors."""

import pytest

from kavka.broker.handlers import metadata as _  # noqa: F401 - registers the handler
from kavka.broker.metadata.metadata_cache import ZERO_TOPIC_ID
from kavka.broker.security.acl import Operation
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.broker_handlers import BROKER_ID, Broker, Denying, topic_id_of, update_metadata


def named(*names: str, **more: bool) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def shown(response: MetadataResponse) -> dict[str | None, ErrorCode]:
    return {each.name: ErrorCode(each.error_code) for each in response.topics}


def test_an_empty_list_means_all_topics_in_version_0_only() -> None:
    broker = Broker(visits=[BROKER_ID], clicks=[BROKER_ID])

    assert set(shown(broker.ask(named(), 0))) == {"visits", "clicks"}
    assert shown(broker.ask(named(), 1)) == {}
    assert set(shown(broker.ask(MetadataRequest(topics=None), 1))) == {"visits", "clicks"}


@pytest.mark.parametrize("version", range(14))
def test_a_topic_is_shown_with_its_partitions_in_every_version(version: int) -> None:
    response = Broker(visits=[BROKER_ID, BROKER_ID]).ask(named("visits"), version)

    (topic,) = response.topics
    assert [(each.partition_index, each.leader_id, each.replica_nodes) for each in topic.partitions] == [
        (0, BROKER_ID, [BROKER_ID]),
        (1, BROKER_ID, [BROKER_ID]),
    ]
    assert topic.topic_id == (topic_id_of("visits") if version >= 10 else ZERO_TOPIC_ID)
    assert [each.leader_epoch for each in topic.partitions] == ([3, 3] if version >= 7 else [-1, -1])
    assert response.controller_id == (BROKER_ID if version >= 1 else -1)
    assert response.cluster_id == ("cluster-of-the-test" if version >= 2 else None)


def test_a_broker_that_advertises_nothing_answers_with_the_address_that_the_client_reached() -> None:
    advertising, silent = Broker(), Broker(unadvertised=["PLAINTEXT"])

    def address(broker: Broker, host: str) -> tuple[str, int]:
        (shown_broker,) = broker.ask(named(), 9, local=(host, 19092)).brokers
        return shown_broker.host, shown_broker.port

    assert address(advertising, "10.1.2.3") == ("broker.example", 9092)
    assert address(silent, "10.1.2.3") == ("10.1.2.3", 19092)
    assert address(silent, "::ffff:192.168.0.7") == ("192.168.0.7", 19092)
    assert address(silent, "::1") == ("::1", 19092)


def test_addresses_of_one_client_are_not_shown_to_another_from_the_store() -> None:
    broker = Broker(unadvertised=["PLAINTEXT"])
    everything = MetadataRequest(topics=None)

    hosts = [
        broker.ask(everything, 9, local=(host, 1)).brokers[0].host for host in ("10.0.0.1", "10.0.0.2", "10.0.0.1")
    ]

    assert hosts == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]


def test_the_stored_answer_about_all_topics_goes_with_its_snapshot() -> None:
    broker = Broker(visits=[BROKER_ID])
    everything = MetadataRequest(topics=None)
    assert set(shown(broker.ask(everything, 9))) == {"visits"}

    broker.metadata.apply(update_metadata({"clicks": [BROKER_ID]}))

    assert set(shown(broker.ask(everything, 9))) == {"visits", "clicks"}


def test_the_store_of_answers_is_bounded() -> None:
    broker = Broker(unadvertised=["PLAINTEXT"])
    for port in range(100):
        broker.ask(MetadataRequest(topics=None), 9, local=("10.0.0.1", port))

    assert len(broker.metadata.current.encoded) <= 16


@pytest.mark.parametrize("version", [0, 1, 9, 12, 13])
def test_a_missing_topic_is_created_and_shown_from_the_next_answer_on(version: int) -> None:
    broker = Broker(visits=[BROKER_ID])

    (visits, new) = broker.ask(named("visits", "new"), version).topics
    (shown_then,) = broker.ask(named("new"), version).topics

    assert (visits.error_code, len(visits.partitions)) == (ErrorCode.NONE, 1)
    assert new.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (new.topic_id, new.is_internal, new.partitions) == (ZERO_TOPIC_ID, False, [])
    assert [each.name for each in broker.controller.created] == ["new"]
    assert shown_then.error_code == ErrorCode.NONE
    assert shown_then.partitions


def test_an_internal_topic_that_is_asked_for_is_created_as_its_coordinator_would() -> None:
    broker = Broker({"offsets.topic.num.partitions": "7", "transaction.state.log.num.partitions": "3"})

    asked = broker.ask(named("__consumer_offsets", "__transaction_state"), 9).topics

    assert [(each.error_code, each.is_internal) for each in asked] == [(ErrorCode.LEADER_NOT_AVAILABLE, True)] * 2
    offsets, transactions = broker.controller.created
    assert (offsets.partitions, offsets.replication_factor, offsets.configs["cleanup.policy"]) == (7, 1, "compact")
    assert (transactions.partitions, transactions.configs["cleanup.policy"]) == (3, "compact")


@pytest.mark.parametrize("case", ["by the broker", "by the request"])
def test_a_missing_topic_is_unknown_where_creation_is_forbidden(case: str) -> None:
    broker = Broker({"auto.create.topics.enable": "false"} if case == "by the broker" else None)

    response = broker.ask(named("new", allow_auto_topic_creation=case != "by the request"), 9)

    assert shown(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert broker.controller.created == []


def test_a_creation_that_takes_too_long_is_leader_not_available() -> None:
    broker = Broker(visits=[BROKER_ID])
    broker.controller.holding = True

    assert shown(broker.ask(named("visits", "new"), 9)) == {
        "visits": ErrorCode.NONE,
        "new": ErrorCode.LEADER_NOT_AVAILABLE,
    }


def test_what_the_controller_refuses_to_create_is_said_with_its_reason() -> None:
    broker = Broker()
    broker.controller.refuse["new"] = BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR)
    broker.controller.refuse["old"] = BrokerError(ErrorCode.TOPIC_ALREADY_EXISTS)

    assert shown(broker.ask(named("new", "old"), 9)) == {
        "new": ErrorCode.INVALID_REPLICATION_FACTOR,
        "old": ErrorCode.LEADER_NOT_AVAILABLE,
    }


def test_a_name_that_no_topic_can_have_is_refused_and_not_created() -> None:
    broker = Broker()

    response = broker.ask(named("not a name", ""), 9)

    assert shown(response) == dict.fromkeys(("not a name", ""), ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert broker.controller.created == []


def test_topics_are_found_by_id_from_version_12_on() -> None:
    broker = Broker(visits=[BROKER_ID])
    unknown = b"\7" * 16
    asked = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=topic_id_of("visits")),
            MetadataRequestTopic(name=None, topic_id=unknown),
        ]
    )

    found, missing = broker.ask(asked, 12).topics

    assert (found.name, found.error_code) == ("visits", ErrorCode.NONE)
    assert (missing.name, missing.topic_id, missing.error_code) == (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID)


def test_topics_by_id_before_version_12_are_an_invalid_request() -> None:
    asked = MetadataRequest(topics=[MetadataRequestTopic(name="visits", topic_id=topic_id_of("visits"))])

    (topic,) = Broker(visits=[BROKER_ID]).ask(asked, 10).topics

    assert topic.error_code == ErrorCode.INVALID_REQUEST


def test_topics_that_may_not_be_described_are_hidden_or_refused() -> None:
    broker = Broker(visits=[BROKER_ID], secret=[BROKER_ID])
    forbids = Denying((Operation.DESCRIBE, "secret"))

    assert set(shown(broker.ask(MetadataRequest(topics=None), 9, authorizer=forbids))) == {"visits"}
    named_response = broker.ask(named("secret", "visits"), 12, authorizer=forbids)
    assert shown(named_response) == {"secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "visits": ErrorCode.NONE}
    assert named_response.topics[0].topic_id == ZERO_TOPIC_ID


def test_a_client_that_may_not_create_is_told_so() -> None:
    broker = Broker()

    response = broker.ask(named("new"), 9, authorizer=Denying((Operation.CREATE, "*")))

    assert shown(response) == {"new": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert broker.controller.created == []


def test_partitions_without_a_reachable_leader_say_why() -> None:
    broker = Broker(dead=[7], none=[-1])
    no_listener = update_metadata({"elsewhere": [2]}, brokers={BROKER_ID: ("a", 1), 2: ("b", 2)})
    no_listener.live_brokers[1].endpoints[0].listener = "INTERNAL"
    broker.metadata.apply(no_listener)

    def errors(version: int) -> dict[str | None, int]:
        topics = broker.ask(named("dead", "none", "elsewhere"), version).topics
        return {each.name: each.partitions[0].error_code for each in topics}

    unavailable = ErrorCode.LEADER_NOT_AVAILABLE
    assert errors(9) == {"dead": unavailable, "none": unavailable, "elsewhere": ErrorCode.LISTENER_NOT_FOUND}
    assert errors(5) == {"dead": unavailable, "none": unavailable, "elsewhere": unavailable}


def test_version_0_leaves_dead_replicas_out() -> None:
    broker = Broker()
    broker.metadata.apply(update_metadata({"visits": [BROKER_ID]}, replicas=(BROKER_ID, 9)))

    old, new = (broker.ask(named("visits"), version).topics[0].partitions[0] for version in (0, 1))

    assert (old.error_code, old.replica_nodes) == (ErrorCode.REPLICA_NOT_AVAILABLE, [BROKER_ID])
    assert (new.error_code, new.replica_nodes) == (ErrorCode.NONE, [BROKER_ID, 9])


def test_authorized_operations_are_shown_when_asked_for() -> None:
    broker = Broker(visits=[BROKER_ID])
    asked = named("visits", include_topic_authorized_operations=True, include_cluster_authorized_operations=True)

    full, silent = broker.ask(asked, 8), broker.ask(named("visits"), 8)

    assert (full.topics[0].topic_authorized_operations, full.cluster_authorized_operations) == (0xDF8, 0x1FA0)
    assert silent.topics[0].topic_authorized_operations == silent.cluster_authorized_operations == -(2**31)


def test_a_topic_named_twice_is_answered_once() -> None:
    assert len(Broker(visits=[BROKER_ID]).ask(named("visits", "visits"), 9).topics) == 1


def test_internal_topics_are_marked() -> None:
    broker = Broker()
    broker.metadata.apply(update_metadata({"__consumer_offsets": [BROKER_ID], "visits": [BROKER_ID]}))

    topics = broker.ask(MetadataRequest(topics=None), 9).topics

    assert {each.name: each.is_internal for each in topics} == {"__consumer_offsets": True, "visits": False}
