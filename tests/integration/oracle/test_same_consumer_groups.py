"""Groups of the consumer protocol, asked step by step on Kavka and on Apache Kafka 4.3: the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.oracle.consumer_script import JOINING, Script
from tests.support import maven
from tests.support.consumer_stage import ConsumerStage
from tests.support.kafka_process import KRaftKafka
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.server import RunningServer
from tests.support.stored_records import stored_records
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]
SETTINGS = {
    "group.consumer.migration.policy": "bidirectional",
    "offsets.topic.replication.factor": "1",
    # The members beat as the script has it, however long a busy machine takes from step to step.
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
}
AT_ONCE = {"group.consumer.min.assignment.interval.ms": "0", "group.consumer.assignment.interval.ms": "0"}
"""Kafka 4.3 else waits a second between two assignments of a group, and computes the second in the background."""
TOPICS = {"t": 4, "u": 2}
TIME_TO_RESOLVE_S = 60.0
NAMES: dict[str, Any] = {"subscribed_topic_names": ["t"]}
ALL = {"t": [0, 1, 2, 3]}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, RunningServer]]:
    maven.classpath("kafka-4.3")
    with (
        KavkaProcess(tmp_path_factory.mktemp("kavka"), SETTINGS) as kavka,
        KRaftKafka(tmp_path_factory.mktemp("kafka"), SETTINGS | AT_ONCE) as kafka,
    ):
        for broker in (kavka, kafka):
            for topic, partitions in TOPICS.items():
                create_topic(broker, topic, partitions=partitions)
        yield kavka, kafka


def requests_that_are_refused(script: Script) -> None:
    script.group("refused")
    bad: list[tuple[str, int, dict[str, Any]]] = [
        ("", 0, {**NAMES, **JOINING}),
        ("a", 0, {**NAMES, **JOINING, "instance_id": ""}),
        ("a", 0, {**NAMES, **JOINING, "rack_id": " "}),
        ("a", 0, {**NAMES, "owned": {}}),
        ("a", 0, {**NAMES, "rebalance_timeout_ms": 1000}),
        ("a", 0, {**NAMES, "rebalance_timeout_ms": 1000, "owned": {"t": [1]}}),
        ("a", 0, JOINING),
        ("a", -2, {}),
        ("a", -3, {}),
        ("a", 0, {**NAMES, **JOINING, "server_assignor": "mine"}),
        ("a", 0, {**JOINING, "subscribed_topic_regex": "("}),
        ("a", 5, {}),
        ("a", -1, {}),
    ]
    for member, epoch, fields in bad:
        script.beat("refused", member, epoch, **fields)
    script.beat(" ", "a", 0, **NAMES, **JOINING)
    script.show("refused")


def two_members_share(script: Script) -> None:
    script.group("two")
    script.beat("two", "a", 0, subscribed_topic_names=["t", "none"], **JOINING)
    script.beat("two", "a", 1)
    script.beat("two", "a", 1, subscribed_topic_names=["t", "none"], rebalance_timeout_ms=600_000, owned=ALL)
    script.beat("two", "a", 9)
    script.beat("two", "a", 0, subscribed_topic_names=["t", "none"], **JOINING)
    script.beat("two", "x", 1)
    script.beat("two", "x", -1)
    script.beat("two", "a", 1, instance_id="i")
    script.beat("two", "b", 0, **NAMES, **JOINING)
    script.show("two")
    script.beat("two", "a", 1, owned=ALL)
    keeps = script.owned
    script.beat("two", "a", 1, owned=ALL)
    script.beat("two", "a", 1)
    script.beat("two", "b", 2, owned={})
    script.show("two")
    for owned in (keeps, keeps, ALL, None):
        script.beat("two", "a", 1, owned=owned)
    script.beat("two", "b", 2, owned={})
    script.show("two")
    script.beat("two", "b", 2, subscribed_topic_names=["u"])
    script.beat("two", "b", 2, owned={})
    script.beat("two", "a", 2, owned=keeps)
    script.beat("two", "b", 3)
    script.beat("two", "a", 3, server_assignor="range")
    script.show("two")
    for member, epoch in (("b", -1), ("a", 3), ("a", -1), ("a", 4)):
        script.beat("two", member, epoch)
        script.show("two")
    script.commit("two", "", -1)


def a_static_member_goes_and_comes(script: Script) -> None:
    """But for one thing: Kafka refuses a member that asks to join again because the answer was lost."""
    script.group("static")
    join = {**NAMES, **JOINING, "instance_id": "i"}
    script.beat("static", "a", 0, **join)
    script.beat("static", "b", 0, **join)
    script.beat("static", "b", 1, instance_id="i")
    script.beat("static", "a", 1)
    script.beat("static", "a", -1, instance_id="other")
    script.beat("static", "b", -2, instance_id="i")
    script.beat("static", "a", -2, instance_id="i")
    script.show("static")
    script.beat("static", "a", 1, instance_id="i")
    script.beat("static", "b", 0, **join)
    script.show("static")
    script.beat("static", "a", 1, instance_id="i")
    script.beat("static", "a", 1)
    script.beat("static", "b", -2, instance_id="i")
    script.beat("static", "c", 0, **{**join, "subscribed_topic_names": ["u"]})
    script.beat("static", "c", 2, owned={})
    script.show("static")


def members_commit_in_their_epoch(script: Script) -> None:
    script.group("commits")
    script.beat("commits", "a", 0, **NAMES, **JOINING)
    for member, epoch, version in (("a", 1, 9), ("a", 2, 9), ("x", 1, 9), ("a", 1, 8), ("", -1, 9)):
        script.commit("commits", member, epoch, version=version)
    script.beat("commits", "b", 0, **NAMES, **JOINING)
    script.beat("commits", "a", 1, owned=ALL)
    keeps = script.owned
    kept, given = keeps["t"][0], min(set(ALL["t"]) - set(keeps["t"]))
    for epoch in (0, 1, 2):
        script.commit("commits", "a", epoch, index=given)
    script.beat("commits", "a", 1, owned=keeps)
    script.beat("commits", "b", 2, owned={})
    for index in (kept, given):
        for member in ("a", "b"):
            for epoch in (-1, 0, 1, 2, 3):
                script.commit("commits", member, epoch, index=index)


def a_classic_member_comes_and_stays(script: Script) -> None:
    script.group("mixed")
    script.beat("mixed", "a", 0, **NAMES, **JOINING)
    script.join("mixed", "")
    script.join("mixed", "k", protocol_type="connect")
    script.join("mixed", "k")
    script.classic_beat("mixed", "k", 2)
    script.sync("mixed", "k", 7)
    script.sync("mixed", "k", 2, name="other")
    script.sync("mixed", "k", 2)
    script.show("mixed")
    script.beat("mixed", "a", 1, owned=ALL)
    script.beat("mixed", "a", 1, owned=script.owned)
    script.classic_beat("mixed", "k", 2)
    script.join("mixed", "k")
    script.sync("mixed", "k", 2)
    script.classic_beat("mixed", "k", 2)
    script.show("mixed")
    script.classic_beat("mixed", "a", 2)
    script.classic_beat("mixed", "x", 2)
    script.commit("mixed", "k", 2, version=8)
    script.commit("mixed", "k", 1, version=8)
    script.beat("mixed", "a", -1)
    script.show("mixed")
    script.classic_beat("mixed", "k", 2)
    script.classic_beat("mixed", "k", 3)


def test_what_kafka_has_written_replays_to_what_kafka_shows(both: tuple[RunningServer, KRaftKafka]) -> None:
    """So a Kafka's directory can be served: tombstones, regular expressions and classic members among them."""
    _, kafka = both
    script = Script(kafka)
    for topic, partitions in TOPICS.items():
        script.know(topic, partitions)
    script.group("kept")
    script.beat("kept", "a", 0, **NAMES, **JOINING)
    script.beat("kept", "b", 0, subscribed_topic_regex="u|t", instance_id="i", **JOINING)
    script.join("kept", "k")
    script.beat("kept", "gone", 0, **NAMES, **JOINING)
    script.beat("kept", "gone", -1)
    script.beat("kept", "a", 1, owned=ALL)
    shown = script.describe("kept")
    ids = script.topic_ids()
    script.close()

    stage = ConsumerStage()
    for topic, partitions in TOPICS.items():
        stage.topics.add(topic, partitions, topic_id=ids[topic])
    for record in stored_records(kafka.log_dir, "__consumer_offsets"):
        stage.shard.replay(record, 0, None)
    (replayed,) = stage.ask(lambda shard, reply: shard.consumer.describe(["kept"], reply)).answer
    assert {member.member_id for member in replayed.members} == {"a", "b", "k"}
    for described in (shown, replayed):
        described.members.sort(key=lambda member: member.member_id)
        for member in described.members:
            member.subscribed_topic_names.sort()
            for assignment in (member.assignment, member.target_assignment):
                assignment.topic_partitions.sort(key=lambda each: each.topic_name)
                for each in assignment.topic_partitions:
                    each.partitions.sort()
    assert replayed == shown


@pytest.mark.parametrize(
    "play",
    [
        requests_that_are_refused,
        two_members_share,
        a_static_member_goes_and_comes,
        members_commit_in_their_epoch,
        a_classic_member_comes_and_stays,
    ],
)
def test_kavka_answers_as_kafka(both: tuple[RunningServer, RunningServer], play: Callable[[Script], None]) -> None:
    transcripts = []
    for broker in both:
        script = Script(broker)
        for topic, partitions in TOPICS.items():
            script.know(topic, partitions)
        play(script)
        script.close()
        transcripts.append(script.transcript)
    ours, theirs = transcripts
    assert ours == theirs


def test_patterns_match_internal_topics_as_in_kafka(both: tuple[RunningServer, RunningServer]) -> None:
    for broker in both:
        script = Script(broker)
        script.know("t", TOPICS["t"])
        script.group("patterns")

        def assigned(script: Script = script) -> set[str]:
            script.beat("patterns", "a", 0, **NAMES, subscribed_topic_regex="__consumer_.*|u", **JOINING)
            (member,) = script.describe("patterns").members
            return {each.topic_name for each in member.target_assignment.topic_partitions}

        wait_until(lambda: assigned() == {"t", "u", "__consumer_offsets"}, TIME_TO_RESOLVE_S, "no topic found")
        script.close()
