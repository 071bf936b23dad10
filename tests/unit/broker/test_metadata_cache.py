"""The metadata cache: snapshots, what they share, and what the controller's messages change."""

import gc

import pytest

from kavka.broker.metadata.metadata_cache import Endpoint, MetadataCache
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.update_metadata import (
    FULL_UPDATE,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from tests.support.broker_handlers import topic_id_of, update_metadata


@pytest.fixture
def cache() -> MetadataCache:
    made = MetadataCache(1)
    made.apply(update_metadata({"visits": [1, 1], "clicks": [1]}))
    return made


def test_topics_and_partitions_are_found_by_name_id_and_index(cache: MetadataCache) -> None:
    snapshot = cache.current
    topic = snapshot.topic("visits")

    assert topic is not None
    assert snapshot.topic_by_id(topic_id_of("visits")) is topic
    assert [each.partition_index for each in topic] == [0, 1]
    found = snapshot.partition("visits", 1)
    assert found is not None
    assert (found.leader, found.leader_epoch, found.replicas, found.isr) == (1, 3, (1,), (1,))
    assert [snapshot.partition("visits", index) for index in (-1, 2)] == [None, None]
    assert (snapshot.topic("nowhere"), snapshot.topic_by_id(bytes(16))) == (None, None)


def test_an_old_snapshot_stays_as_it_was_and_shares_what_did_not_change(cache: MetadataCache) -> None:
    old = cache.current

    new = cache.apply(update_metadata({"clicks": [1, 1]}))

    assert cache.current is new
    assert new.topic("visits") is old.topic("visits")
    assert [len(snapshot.topics["clicks"]) for snapshot in (old, new)] == [1, 2]


def test_an_update_of_some_partitions_keeps_the_others(cache: MetadataCache) -> None:
    grown = update_metadata({"visits": [1, 1, 1, 1]})
    grown.topic_states[0].partition_states = grown.topic_states[0].partition_states[3:]

    cache.apply(grown)

    topic = cache.current.topics["visits"]
    assert [each.partition_index for each in topic] == [0, 1, 3]
    assert topic.partition(2) is None
    assert [each.partition_index for each in topic.from_index(2)] == [3]


def test_a_topic_goes_with_its_last_partition(cache: MetadataCache) -> None:
    first = update_metadata({"visits": [-2, -2]})
    last = first.topic_states[0].partition_states.pop()
    cache.apply(first)
    assert [each.partition_index for each in cache.current.topics["visits"]] == [1]

    first.topic_states[0].partition_states = [last]
    cache.apply(first)

    assert set(cache.current.topics) == {"clicks"}
    assert topic_id_of("visits") not in cache.current.names_by_id


def test_what_becomes_of_a_copy_of_a_topic_with_its_id_is_taken_in(cache: MetadataCache) -> None:
    """Kafka's controllers tell of two topics with one id, where somebody has copied a topic's node by hand."""
    copy = update_metadata({"a-copy": [1]})
    copy.topic_states[0].topic_id = topic_id_of("visits")
    cache.apply(copy)
    copy.topic_states[0].partition_states[0].leader = -2
    cache.apply(copy)
    assert set(cache.current.topics) == {"visits", "clicks"}
    again = update_metadata({"visits": [1]})
    again.topic_states[0].topic_id = b"\7" * 16

    cache.apply(again)

    assert cache.current.names_by_id == {b"\7" * 16: "visits", topic_id_of("clicks"): "clicks"}


def test_a_topic_made_again_replaces_the_old_one_of_its_name(cache: MetadataCache) -> None:
    again = update_metadata({"visits": [1]})
    again.topic_states[0].topic_id = b"\7" * 16

    cache.apply(again)

    assert len(cache.current.topics["visits"]) == 1
    assert cache.current.topic_by_id(topic_id_of("visits")) is None
    assert cache.current.topic_by_id(b"\7" * 16) is cache.current.topic("visits")


def test_a_full_update_forgets_topics_that_it_does_not_name(cache: MetadataCache) -> None:
    cache.apply(update_metadata({"clicks": [1]}, kind=FULL_UPDATE))

    assert set(cache.current.topics) == {"clicks"}
    assert set(cache.current.names_by_id) == {topic_id_of("clicks")}


def test_a_deposed_controller_is_not_believed(cache: MetadataCache) -> None:
    cache.apply(update_metadata({}, epoch=5))
    before = cache.current

    with pytest.raises(BrokerError) as raised:
        cache.apply(update_metadata({"visits": [7]}, epoch=4))

    assert raised.value.code is ErrorCode.STALE_CONTROLLER_EPOCH
    assert cache.current is before


def test_old_controllers_send_partitions_ungrouped_and_hosts_without_listeners(cache: MetadataCache) -> None:
    state = UpdateMetadataPartitionState(
        topic_name="visits",
        partition_index=0,
        controller_epoch=2,
        leader=4,
        leader_epoch=9,
        isr=[4],
        zk_version=0,
        replicas=[4],
    )
    brokers = [
        UpdateMetadataBroker(id=4, v0_host="old", v0_port=9092, rack=None),
        UpdateMetadataBroker(
            id=5, endpoints=[UpdateMetadataEndpoint(host="secure", port=9093, security_protocol=1)], rack="r"
        ),
    ]

    cache.apply(
        UpdateMetadataRequest(
            controller_id=4, controller_epoch=2, ungrouped_partition_states=[state], live_brokers=brokers
        )
    )

    snapshot = cache.current
    found = snapshot.partition("visits", 0)
    assert found is not None
    assert found.leader == 4
    assert snapshot.topic_id("visits") == topic_id_of("visits")
    assert [(each.broker_id, each.host) for each in snapshot.alive_brokers("PLAINTEXT")] == [(4, "old")]
    assert [(each.broker_id, each.rack) for each in snapshot.alive_brokers("SSL")] == [(5, "r")]


def test_listeners_hear_of_each_change_with_both_snapshots() -> None:
    cache = MetadataCache(1)
    heard: list[tuple[set[str], set[str]]] = []
    cache.on_change(lambda old, new: heard.append((set(old.topics), set(new.topics))))

    cache.apply(update_metadata({"visits": [1]}))
    cache.apply(update_metadata({"visits": [-2]}))

    assert heard == [(set(), {"visits"}), ({"visits"}, set())]


def test_partitions_cost_the_garbage_collector_nothing() -> None:
    cache = MetadataCache(1)
    cache.apply(update_metadata({f"t{number}": [1] * 100 for number in range(20)}))
    gc.collect()

    rows = [row for topic in cache.current.topics.values() for row in topic._rows]

    assert len(rows) == 2000
    assert not any(gc.is_tracked(row) for row in rows)


def test_a_listener_that_starts_to_advertise_is_shown_so_at_once() -> None:
    cache = MetadataCache(1, ["PLAINTEXT"])
    cache.apply(update_metadata({"visits": [1]}))
    reached = Endpoint("10.0.0.1", 1)
    assert cache.current.alive_brokers("PLAINTEXT", reached)[0].host == "10.0.0.1"

    cache.set_unadvertised([])

    assert cache.current.alive_brokers("PLAINTEXT", reached)[0].host == "broker.example"
    assert "visits" in cache.current.topics
