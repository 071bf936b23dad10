"""Our members in one group with those of other libraries, while records flow."""

import pytest

from tests.support import maven
from tests.support.client_brokers import KAFKA_39, KAFKA_43, KAVKA, NEWER
from tests.support.client_groups import COOPERATIVE, EVERY_WAY, NEW, RANGE, ROUND_ROBIN, row
from tests.support.group_members import MORTAL, Feeder, Group, Member
from tests.support.server import RunningServer

PARTITIONS = 6
JAVA = "kafka-4.3"
LIBRARIES_WAYS = [
    *(row(KAVKA, way) for way in (RANGE, ROUND_ROBIN, COOPERATIVE)),
    row(KAFKA_39, ROUND_ROBIN),
    row(KAFKA_43, COOPERATIVE),
]


@pytest.mark.parametrize(("broker", "way"), LIBRARIES_WAYS, indirect=["broker"])
def test_all_libraries_share_one_group(broker: RunningServer, group: Group, way: dict[str, str]) -> None:
    _share(broker, group, way, ["confluent", "kavka", "kafka-python"])


@pytest.mark.parametrize("broker", NEWER, indirect=True)
def test_libraries_share_a_group_of_the_new_protocol(broker: RunningServer, group: Group) -> None:
    _share(broker, group, NEW, ["kavka", "confluent", "kavka"])


@pytest.mark.java
@pytest.mark.parametrize(("broker", "way"), EVERY_WAY, indirect=["broker"])
def test_we_share_groups_with_java(broker: RunningServer, group: Group, way: dict[str, str]) -> None:
    maven.classpath("kafka-4.3")
    _share(broker, group, way, ["kafka-4.3", "kavka", "kavka"])


@pytest.mark.parametrize(
    ("broker", "library", "way"),
    [
        pytest.param(*KAVKA.values, "kafka-python", RANGE, id="kavka-kafka-python-range"),
        pytest.param(*KAVKA.values, "confluent", NEW, id="kavka-confluent-consumer"),
        pytest.param(*KAVKA.values, JAVA, NEW, id="kavka-java-consumer", marks=pytest.mark.java),
    ],
    indirect=["broker"],
)
def test_a_group_is_rolled_from_another_library_to_ours_and_back(
    broker: RunningServer, group: Group, library: str, way: dict[str, str]
) -> None:
    """One member after the other is replaced, while records flow: both kinds are in the group in between."""
    if library == JAVA:
        maven.classpath(library)
    group.create_topic(PARTITIONS)
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        members = [group.join(library, way) for _ in range(2)]
        group.wait_until_shared(members, PARTITIONS)
        for successor in ("kavka", library):
            for index in range(len(members)):
                members[index].close()
                members[index] = group.join(successor, way)
                group.wait_until_shared(members, PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    for member in members:
        member.close()
    group.assert_sound(ends)


def _share(broker: RunningServer, group: Group, way: dict[str, str], libraries: list[str]) -> None:
    """They come one after the other, the first one leaves, and one of ours is killed or leaves too."""
    group.create_topic(PARTITIONS)
    with Feeder(broker, group.topic, PARTITIONS) as feeder:
        members: list[Member] = []
        for library in libraries:
            members.append(group.join(library, way if way is NEW else {**way, **MORTAL}))
            group.wait_until_shared(members, PARTITIONS)
        members.pop(0).close()
        group.wait_until_shared(members, PARTITIONS)
        members.append(group.join("kavka", way))
        group.wait_until_shared(members, PARTITIONS)
        members.pop(0).kill()
        group.wait_until_shared(members, PARTITIONS)
        ends = feeder.stop()
    group.wait_until_done(ends)
    for member in members:
        member.close()
    group.assert_sound(ends)
