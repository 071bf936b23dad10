"""When metadata are asked for, for which topics, and what is made of the answers."""

import threading
from typing import Any

import pytest

from kavka.client.api_errors import InvalidTopicError
from kavka.client.bootstrap import Bootstrap, bootstrap_nodes
from kavka.client.cluster import Cluster
from kavka.client.errors import ClientClosedError, DisconnectedError, UnsupportedVersionError
from kavka.client.metadata import Metadata, MetadataSettings
from kavka.client.metadata_update import LeaderAndEpoch
from kavka.client.node import Node
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.client_line import Clock

INFINITY = float("inf")
ID, OTHER_ID = bytes([1] * 16), bytes([2] * 16)


class Stage:
    """Metadata with a clock of the test, and how often they woke their owner."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Clock()
        self.wakes = 0
        bootstrap = Bootstrap(bootstrap_nodes(["first:9092", "second:9093"]), on_found=self.wake)
        self.metadata = Metadata(bootstrap, MetadataSettings(**settings), wake=self.wake, now_ms=self.clock)
        self.seen: list[Cluster] = []
        self.metadata.listeners.append(self.seen.append)

    def wake(self) -> None:
        self.wakes += 1

    def due(self) -> float:
        return self.metadata.due_in_ms(self.clock())

    def asked(self) -> list[str] | None:
        """What is asked for now."""
        assert self.due() == 0
        request = self.metadata.request()
        return None if request.topics is None else [str(topic.name) for topic in request.topics]

    def answer(self, *topics: MetadataResponseTopic, **fields: Any) -> Cluster:
        fields.setdefault("brokers", [MetadataResponseBroker(node_id=i, host="h", port=i) for i in (1, 2)])
        self.metadata.updated(MetadataResponse(topics=list(topics), **fields), self.clock())
        return self.metadata.cluster

    def round(self, *topics: MetadataResponseTopic) -> Cluster:
        self.clock.now_ms += self.due()
        self.asked()
        return self.answer(*topics)


def topic(name: str = "t", leader: int = 1, epoch: int = 5, topic_id: bytes = ID, code: int = 0) -> Any:
    partition = MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2], isr_nodes=[1]
    )
    rows = [] if code else [partition]
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id, partitions=rows)


def test_nothing_is_asked_before_something_is_wanted() -> None:
    stage = Stage()
    assert stage.due() == INFINITY
    assert stage.metadata.nodes() == (Node(-1, "first", 9092), Node(-2, "second", 9093))


def test_a_topic_that_is_wanted_is_asked_for_at_once_and_known_then() -> None:
    stage = Stage()
    version = stage.metadata.want(["t"])
    assert stage.wakes == 1
    assert stage.asked() == ["t"]
    cluster = stage.answer(topic())
    assert cluster.version > version
    assert cluster.leader(TopicPartition("t", 0)) == Node(1, "h", 1)
    assert cluster.names == {ID: "t"}
    assert stage.seen == [cluster]
    assert stage.metadata.nodes() == (Node(1, "h", 1), Node(2, "h", 2))
    assert stage.metadata.want(["t"]) < cluster.version, "there is nothing to wait for"
    assert stage.wakes == 1


def test_a_new_topic_is_asked_for_alone_and_the_others_stay() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    stage.round(topic())
    stage.metadata.want(["u"])
    assert stage.asked() == ["u"]
    assert stage.answer(topic("u", topic_id=OTHER_ID)).topics.keys() == {"t", "u"}


def test_what_is_wanted_while_a_request_is_out_comes_with_the_next_one() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    stage.asked()
    version = stage.metadata.want(["u"])
    again = stage.metadata.want(["t"])
    cluster = stage.answer(topic())
    assert again < cluster.version <= version
    stage.clock.now_ms += stage.due()
    assert stage.asked() == ["u"]
    assert stage.answer(topic("u", topic_id=OTHER_ID)).version > version


def test_after_an_answer_the_next_waits_for_the_back_off_but_not_for_a_new_topic() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    stage.round(topic())
    stage.metadata.request_update()
    assert 80 <= stage.due() <= 120
    stage.metadata.want(["u"])
    assert stage.due() == 0


def test_metadata_grow_old() -> None:
    stage = Stage(max_age_ms=1_000)
    stage.metadata.want(["t"])
    stage.round(topic())
    assert stage.due() == 1_000
    assert stage.metadata.age_s() == 0
    stage.clock.now_ms += 1_000
    assert stage.metadata.age_s() == 1
    assert stage.asked() == ["t"]


def test_failures_are_followed_by_longer_and_longer_waits() -> None:
    stage = Stage()
    version = stage.metadata.want(["t"])
    waits = []
    for _ in range(6):
        stage.clock.now_ms += stage.due()
        assert stage.asked() == ["t"]
        stage.metadata.failed(DisconnectedError("gone"), stage.clock())
        waits.append(stage.due())
    assert 80 <= waits[0] <= 120
    assert 160 <= waits[1] <= 240
    assert 800 <= waits[5] <= 1_000.001
    assert stage.round(topic()).version > version


def test_an_unknown_topic_is_asked_for_again_and_ever_later_while_nothing_changes() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster = stage.round(topic(code=code))
    assert cluster.topics["t"].error_code == code
    waits = [stage.due()]
    for _ in range(5):
        stage.round(topic(code=code))
        waits.append(stage.due())
    assert waits[0] <= 120
    assert waits[-1] >= 800
    stage.round(topic())
    assert stage.due() > 100_000


def test_a_topic_that_may_only_be_new_is_warned_of_as_that_and_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.metadata.want(["new", "secret"])
    rows = topic("new", code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), topic("secret", code=29)
    for _ in range(3):
        stage.round(*rows)
    assert [each.getMessage().partition(" error=")[0] for each in caplog.records if each.levelname == "WARNING"] == [
        "not there, or not there yet; asked for again topic='new'",
        "no metadata of topic='secret'",
    ]


def test_an_error_that_stays_is_not_asked_about_again() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    stage.round(topic(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert stage.due() > 100_000


def test_an_older_epoch_is_no_news_but_another_topic_of_the_name_is() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    partition = TopicPartition("t", 0)
    stage.round(topic(leader=1, epoch=5))
    stage.metadata.request_update()
    info = stage.round(topic(leader=2, epoch=4)).partition(partition)
    assert info is not None
    assert (info.leader_id, info.leader_epoch) == (1, 5)
    stage.metadata.request_update()
    info = stage.round(topic(leader=2, epoch=0, topic_id=OTHER_ID)).partition(partition)
    assert info is not None
    assert (info.leader_id, info.leader_epoch) == (2, 0)


def test_leaders_that_errors_name_are_taken_when_they_are_newer() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    old = stage.round(topic(leader=1, epoch=5))
    partition = TopicPartition("t", 0)
    learn = stage.metadata.learn_leaders
    assert learn({partition: LeaderAndEpoch(2, 5)}, []) == set(), "not newer"
    assert learn({partition: LeaderAndEpoch(9, 6)}, []) == set(), "at an address nobody knows"
    assert learn({TopicPartition("u", 0): LeaderAndEpoch(2, 6)}, []) == set()
    assert stage.metadata.cluster is old
    nine = Node(9, "new", 9)
    assert learn({partition: LeaderAndEpoch(9, 6)}, [nine]) == {partition}
    assert stage.metadata.cluster.leader(partition) == nine
    assert stage.metadata.cluster.version == old.version
    assert nine in stage.metadata.nodes()
    assert stage.seen[-1] is stage.metadata.cluster


def test_topics_that_nobody_wants_for_long_are_forgotten() -> None:
    stage = Stage(max_age_ms=1_000, max_idle_ms=2_500)
    stage.metadata.want(["t", "u"])
    stage.round(topic(), topic("u", topic_id=OTHER_ID))
    stage.clock.now_ms += 2_000
    stage.metadata.want(["u"])
    stage.clock.now_ms += 1_000
    assert stage.asked() == ["u"]
    assert stage.answer(topic("u", topic_id=OTHER_ID)).topics.keys() == {"u"}


@pytest.mark.parametrize(
    ("name", "error"),
    [(None, TypeError), (5, TypeError), ("x" * 40_000, InvalidTopicError), ("\udc80", InvalidTopicError)],
)
def test_what_no_request_can_name_is_refused_and_keeps_nothing_else_from_being_known(
    name: Any, error: type[Exception]
) -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    for want in stage.metadata.want, stage.metadata.want_only:
        with pytest.raises(error):
            want([name])
    assert stage.asked() == ["t"]


def test_all_topics_and_then_only_some() -> None:
    stage = Stage()
    stage.metadata.want_all()
    assert stage.asked() is None
    assert stage.answer(topic(), topic("u", topic_id=OTHER_ID)).topics.keys() == {"t", "u"}
    stage.metadata.want_only(["t"])
    stage.metadata.request_update()
    stage.clock.now_ms += stage.due()
    assert stage.asked() == ["t"]
    assert stage.answer(topic()).topics.keys() == {"t"}


def test_with_no_broker_to_be_reached_it_begins_anew() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    assert not stage.metadata.unreachable(stage.clock()), "there is nothing else to try"
    stage.round(topic())
    assert stage.metadata.unreachable(stage.clock())
    assert [node.id for node in stage.metadata.nodes()] == [-1, -2]
    assert stage.metadata.cluster.topics, "what was known is still of use"


def test_where_nobody_is_at_the_first_addresses_it_goes_back_to_those_of_before() -> None:
    """Brokers that all failed at one moment are back at the next; where it began, nobody may ever be again."""
    stage = Stage()
    stage.metadata.want(["t"])
    stage.round(topic())
    for expected in ([-1, -2], [1, 2], [-1, -2]):
        assert stage.metadata.unreachable(stage.clock())
        assert [node.id for node in stage.metadata.nodes()] == expected
    stage.round(topic())
    stage.metadata.request_update()
    stage.clock.now_ms += stage.due()
    stage.asked()
    stage.answer(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    assert not stage.metadata.unreachable(stage.clock()), "those of before are another cluster's"
    assert [node.id for node in stage.metadata.nodes()] == [-1, -2]


def test_without_rebootstrap_it_keeps_to_what_it_knows() -> None:
    stage = Stage(rebootstrap=False)
    stage.metadata.want(["t"])
    stage.round(topic())
    assert not stage.metadata.unreachable(stage.clock())
    stage.metadata.request_update()
    stage.clock.now_ms += stage.due()
    stage.asked()
    stage.answer(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    assert [node.id for node in stage.metadata.nodes()] == [1, 2]


def test_it_begins_anew_when_a_broker_says_so_or_no_answer_comes_for_long() -> None:
    stage = Stage(rebootstrap_trigger_ms=5_000)
    stage.metadata.want(["t"])
    stage.round(topic())
    stage.metadata.request_update()
    stage.clock.now_ms += stage.due()
    stage.asked()
    stage.answer(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    assert [node.id for node in stage.metadata.nodes()] == [-1, -2]
    stage.round(topic())
    assert [node.id for node in stage.metadata.nodes()] == [1, 2]
    stage.metadata.request_update()
    for passed_ms in (0, 5_000):
        stage.clock.now_ms += max(passed_ms, stage.due())
        stage.asked()
        stage.metadata.failed(DisconnectedError("gone"), stage.clock())
    assert [node.id for node in stage.metadata.nodes()] == [-1, -2]


def test_an_answer_without_brokers_is_none() -> None:
    stage = Stage()
    stage.metadata.want(["t"])
    stage.asked()
    assert stage.answer(brokers=[]).version == 0
    assert 80 <= stage.due() <= 120


class TestWaiting:
    def test_it_ends_with_the_news(self) -> None:
        stage = Stage()
        version = stage.metadata.want(["t"])
        heard: list[bool] = []
        waiter = threading.Thread(target=lambda: heard.append(stage.metadata.wait_for(version, stage.clock() + 60_000)))
        waiter.start()
        stage.round(topic())
        waiter.join(60)
        assert heard == [True]

    def test_it_ends_at_its_deadline(self) -> None:
        stage = Stage()
        assert not stage.metadata.wait_for(stage.metadata.want(["t"]), stage.clock())

    def test_it_raises_what_is_fatal_once(self) -> None:
        stage = Stage()
        version = stage.metadata.want(["t"])
        stage.asked()
        stage.metadata.failed(UnsupportedVersionError("too old"), stage.clock())
        with pytest.raises(UnsupportedVersionError):
            stage.metadata.wait_for(version, stage.clock() + 60_000)
        assert not stage.metadata.wait_for(version, stage.clock())

    def test_it_ends_when_the_client_does(self) -> None:
        stage = Stage()
        version = stage.metadata.want(["t"])
        stage.metadata.close()
        with pytest.raises(ClientClosedError):
            stage.metadata.wait_for(version, stage.clock() + 60_000)
