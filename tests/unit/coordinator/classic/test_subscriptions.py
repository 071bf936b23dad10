"""What the coordinator knows of the members' subscriptions, and what that means for committed offsets."""

import pytest

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.protocol.errors import BrokerError
from kavka.protocol.internal.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from tests.support.classic_stage import ClassicStage
from tests.support.coordinator_stage import StillClock


def subscription(*topics: str, version: int = 3) -> tuple[tuple[str, bytes], ...]:
    return (("range", encode_subscription(ConsumerProtocolSubscription(topics=list(topics)), version)),)


def test_the_topics_of_all_members_are_known() -> None:
    stage = ClassicStage()
    ids = [stage.new(protocols=subscription(topic, version=version))[0] for topic, version in (("a", 0), ("b", 3))]
    stage.advance(9_000)
    stage.sync_all(ids)

    group = stage.group()

    assert group.subscribed_topics() == frozenset({"a", "b"})
    assert group.is_subscribed_to("a")
    assert not group.is_subscribed_to("c")


def test_a_version_that_is_not_known_yet_still_tells_the_topics() -> None:
    stage = ClassicStage()
    known = subscription("a")[0][1]
    stage.stable(1, protocols=(("range", b"\x00\x63" + known[2:] + b"what comes later"),))

    assert stage.group().subscribed_topics() == frozenset({"a"})


def test_subscriptions_that_cannot_be_read_count_as_all_topics() -> None:
    stage = ClassicStage()
    stage.stable(2)

    assert stage.group().subscribed_topics() is None
    assert stage.group().is_subscribed_to("any")
    assert stage.group().offset_expiry(stage.time_ms) is None


def test_the_topics_are_those_of_the_last_generation_while_a_new_one_is_made() -> None:
    stage = ClassicStage()
    _, follower = stage.stable(2, protocols=subscription("a"))

    stage.join(follower, protocols=subscription("b"))

    assert stage.group().subscribed_topics() == frozenset({"a"})


def test_a_stable_group_lets_offsets_expire_of_topics_it_is_not_subscribed_to() -> None:
    stage = ClassicStage()
    stage.stable(1, protocols=subscription("a"))

    expiry = stage.group().offset_expiry(stage.time_ms)

    assert expiry is not None
    assert expiry.base_timestamp_ms(5) == 5
    assert expiry.spares("a")
    assert not expiry.spares("b")


def test_nothing_expires_during_a_rebalance() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable(2, protocols=subscription("a"))
    stage.join(leader, protocols=subscription("a"))

    assert stage.group().offset_expiry(stage.time_ms) is None


def test_an_empty_groups_offsets_expire_since_it_is_empty() -> None:
    stage = ClassicStage()
    ids = stage.stable(1, protocols=subscription("a"))
    stage.advance(5_000)
    stage.leave(*ids)
    emptied_ms = stage.time_ms
    stage.advance(50_000)
    stage.reload()

    expiry = stage.group().offset_expiry(stage.time_ms)

    assert expiry is not None
    assert expiry.base_timestamp_ms(1) == emptied_ms
    assert not expiry.spares("a")


def test_a_standalone_consumers_offsets_expire_since_they_were_committed() -> None:
    expiry = ClassicGroup("simple", StillClock()).offset_expiry(0)

    assert expiry is not None
    assert expiry.base_timestamp_ms(7) == 7
    assert not expiry.spares("a")


def test_offsets_of_a_group_of_others_than_consumers_cannot_be_deleted_while_it_has_members() -> None:
    stage = ClassicStage()
    member_id, _ = stage.new(protocol_type="connect")
    stage.advance(3_000)

    with pytest.raises(BrokerError, match="NON_EMPTY_GROUP"):
        stage.group().validate_offset_delete()

    stage.leave(member_id)
    stage.group().validate_offset_delete()
    assert not stage.group().is_subscribed_to("a")


def test_describing_shows_metadata_and_assignments_of_a_stable_group_only() -> None:
    stage = ClassicStage()
    leader, _ = stage.stable(2)
    stable = stage.shard.classic.describe(stage.group())
    stage.join(leader)
    preparing = stage.shard.classic.describe(stage.group())

    assert (stable.group_state, stable.protocol_type, stable.protocol_data) == ("Stable", "consumer", "range")
    shown = stable.members[0]
    assert (shown.member_id, shown.member_metadata, shown.member_assignment) == (leader, b"r", leader.encode())
    assert (preparing.group_state, preparing.protocol_data) == ("PreparingRebalance", "")
    assert {(each.member_metadata, each.member_assignment) for each in preparing.members} == {(b"", b"")}
    assert preparing.members[0].client_host == "/127.0.0.1"
