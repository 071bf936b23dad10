"""Names that Kafka would take, and those that it would not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.cluster.topic_ids import RESERVED_IDS, new_topic_id
from kavka.cluster.topic_names import collision_key, is_internal, validate_topic_name
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.schema import uuid_to_text

legal = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=249).filter(lambda name: name not in (".", ".."))


@given(legal)
def test_legal_names_pass(name: str) -> None:
    validate_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "a/b", "ü", "a\n", "a\0", "a:b"])
def test_illegal_names_are_refused_with_kafkas_code(name: str) -> None:
    with pytest.raises(BrokerError) as raised:
        validate_topic_name(name)
    assert raised.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_error_for_an_endless_name_is_short() -> None:
    with pytest.raises(BrokerError) as raised:
        validate_topic_name("x" * 30_000)
    assert len(str(raised.value)) < 1000


def test_names_collide_when_their_metrics_would() -> None:
    assert [name for name in ("a_b", "a-b", "ab") if collision_key(name) == collision_key("a.b")] == ["a_b"]


def test_the_brokers_own_topics_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__other")


def test_topic_ids_are_version_4_and_never_look_like_an_option() -> None:
    ids = [new_topic_id() for _ in range(2000)]
    assert len(set(ids)) == 2000
    assert not RESERVED_IDS.intersection(ids)
    assert all(each[6] >> 4 == 4 and each[8] >> 6 == 2 for each in ids)
    assert not any(uuid_to_text(each).startswith("-") for each in ids)
