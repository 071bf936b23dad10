"""Groups to be shared out: random ones, and what must be true of any sharing."""

from collections.abc import Sequence

from hypothesis import strategies as st

from kavka.client.cluster import Cluster, PartitionInfo, TopicInfo
from kavka.client.consumer.group.assignors.assignor import MemberSubscription, Shares, Subscriptions, TopicRacks
from kavka.client.topic_partition import TopicPartition
from kavka.protocol.schema import ZERO_UUID

TOPICS = ["t0", "t1", "t2", "t3"]
RACKS = ["a", "b", "c"]


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool = False, racks: bool = False) -> tuple[TopicRacks, Subscriptions]:
    """Topics and members; members may own what others own too, and what is not there."""
    in_racks = st.frozensets(st.sampled_from(RACKS), min_size=1) if racks else st.just(frozenset[str]())
    topics = draw(st.dictionaries(st.sampled_from(TOPICS), st.lists(in_racks, min_size=1, max_size=7), min_size=1))
    names = st.lists(st.sampled_from(sorted(topics)), unique=True, min_size=1)
    common = draw(names)
    owned = st.lists(st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 8)), unique=True, max_size=6)
    members = {}
    for number in range(draw(st.integers(1, 6))):
        members[f"m{number}"] = MemberSubscription(
            tuple(common if same_topics else draw(names)),
            owned=tuple(draw(owned)),
            generation=draw(st.integers(-1, 3)),
            rack=draw(st.sampled_from([None, *RACKS])) if racks else None,
            instance_id=draw(st.sampled_from([None, f"i{9 - number}"])),
        )
    wanted = {topic for each in members.values() for topic in each.topics}
    return {topic: each for topic, each in topics.items() if topic in wanted}, members


def one_topic(name: str, partitions: int, members: Sequence[str]) -> tuple[Cluster, dict[str, MemberSubscription]]:
    """A cluster with it, and members that are subscribed to it."""
    rows = {number: PartitionInfo(1, 0, (1,)) for number in range(partitions)}
    cluster = Cluster(topics={name: TopicInfo(name, ZERO_UUID, 0, False, rows)})
    return cluster, {member: MemberSubscription((name,)) for member in members}


def everything(topics: TopicRacks) -> list[TopicPartition]:
    """All partitions, in order."""
    return [TopicPartition(topic, number) for topic in sorted(topics) for number in range(len(topics[topic]))]


def check(topics: TopicRacks, subscriptions: Subscriptions, shares: Shares) -> None:
    """Each partition once, and at a member that is subscribed to its topic."""
    assert shares.keys() == subscriptions.keys()
    assert sorted(each for share in shares.values() for each in share) == everything(topics)
    for member, share in shares.items():
        assert {each.topic for each in share} <= set(subscriptions[member].topics)


def is_even(subscriptions: Subscriptions, shares: Shares) -> bool:
    """Whether nobody could have something of somebody with at least two more."""
    return not any(
        len(theirs) > len(mine) + 1 and any(each.topic in subscriptions[member].topics for each in theirs)
        for member, mine in shares.items()
        for theirs in shares.values()
    )


def moves(before: Shares, after: Shares) -> int:
    """How many partitions that had an owner have another now."""
    owner = {each: member for member, share in after.items() for each in share}
    return sum(each in owner and owner[each] != member for member, share in before.items() for each in share)
