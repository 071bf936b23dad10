"""Prepared requests under an authorizer: as quick as without, and never by rights that no longer count."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.metrics.log_lines import AUDIT
from kavka.broker.partitions.partition import Partition
from kavka.broker.requests.prepared_commit import PreparedCommits
from kavka.broker.requests.prepared_produce import PreparedProduces
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.services import Services
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern
from kavka.protocol.codec import decode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header
from kavka.protocol.messages.offset_commit import OffsetCommitResponse
from kavka.protocol.messages.produce import ProduceResponse
from tests.component.broker.test_call_counts import (
    INLINE_COMMIT,
    RUNS,
    SHORT_PRODUCE,
    TWO_PARTITIONS_PRODUCE,
    calls_per_request,
    produces,
    two_partitions,
)
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.group_core import GroupCore, commit_frame
from tests.support.partition_logs import batch_of
from tests.support.prepared_ways import watch_short_ways

VERSION = 9
COMMIT_VERSION = 8
READ, WRITE = (AclEntry("User:ANONYMOUS", "Allow", operation, "*") for operation in ("Read", "Write"))
DENIED = AclEntry("User:*", "Deny", "Write", "10.0.0.9")
VISITS, GROUP = ResourcePattern("Topic", "visits"), ResourcePattern("Group", "g")


def allow(core: BrokerCore, *entries: AclEntry) -> None:
    """These ACLs count, and no others."""
    authorizer = core.services.authorizer
    assert isinstance(authorizer, AclAuthorizer)
    authorizer.swap({VISITS: frozenset(entries), GROUP: frozenset(entries)})


def made(services: Services) -> AclAuthorizer:
    return AclAuthorizer((), services.changed)


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, authorizer=made)
    core.create("visits", 2)
    allow(core, WRITE)
    yield core
    core.close()


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[GroupCore]:
    core = GroupCore(tmp_path, inline=True, authorizer=made)
    allow(core, READ)
    yield core
    core.close()


@pytest.fixture
def short_ways(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    return watch_short_ways(monkeypatch, PreparedProduces)


def body(api_key: int, version: int, answer: bytes) -> memoryview:
    _, start = decode_response_header(api_key, version, answer[4:])
    return memoryview(answer)[4 + start :]


def produce(core: BrokerCore, number: int, *partitions: int) -> set[ErrorCode]:
    records: dict[tuple[str, int], bytes | None] = {
        ("visits", index): bytes(batch_of(b"x")) for index in partitions or (0,)
    }
    response = decode(ProduceResponse, VERSION, body(0, VERSION, core.ask(produce_frame(VERSION, number, records))))
    return {ErrorCode(each.error_code) for topic in response.responses for each in topic.partition_responses}


def commit(core: GroupCore, number: int) -> set[ErrorCode]:
    frame = commit_frame(COMMIT_VERSION, number, [("visits", 0, number)])
    response = decode(OffsetCommitResponse, COMMIT_VERSION, body(8, COMMIT_VERSION, core.ask(frame)))
    return {ErrorCode(each.error_code) for topic in response.topics for each in topic.partitions}


@pytest.mark.parametrize("partitions", [(0,), (0, 1)])
def test_what_is_allowed_takes_the_short_way_until_the_acls_change(
    core: BrokerCore, short_ways: list[bool], partitions: tuple[int, ...]
) -> None:
    assert [produce(core, number, *partitions) for number in range(3)] == [{ErrorCode.NONE}] * 3
    assert short_ways == [True, True]

    allow(core, WRITE, DENIED)
    end = core.log("visits").log_end_offset
    assert [produce(core, number, *partitions) for number in range(2)] == [{ErrorCode.TOPIC_AUTHORIZATION_FAILED}] * 2
    assert core.log("visits").log_end_offset == end
    assert short_ways[2:] == [False, False]

    allow(core, WRITE)
    assert [produce(core, number, *partitions) for number in range(2)] == [{ErrorCode.NONE}] * 2
    assert short_ways[4:] == [False, True]


def test_a_commit_takes_the_short_way_until_the_acls_change(groups: GroupCore, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = watch_short_ways(monkeypatch, PreparedCommits)
    assert [commit(groups, number) for number in range(4)] == [{ErrorCode.NONE}] * 4
    assert taken[-1]

    allow(groups, WRITE)
    assert [commit(groups, number) for number in range(2)] == [{ErrorCode.GROUP_AUTHORIZATION_FAILED}] * 2
    assert taken[-2:] == [False, False]


def test_what_was_decided_before_a_change_is_not_learnt_after_it(
    core: BrokerCore, short_ways: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Partition.append

    def revoked_meanwhile(self: Partition, *arguments: Any, **named: Any) -> Any:
        allow(core, DENIED)
        return append(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Partition, "append", revoked_meanwhile)
        assert produce(core, 0) == {ErrorCode.NONE}

    assert produce(core, 1) == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert short_ways == [False]


def test_where_everything_is_audited_nothing_is_learnt(
    core: BrokerCore, short_ways: list[bool], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger=AUDIT):
        assert [produce(core, number) for number in range(3)] == [{ErrorCode.NONE}] * 3

    assert short_ways == []
    line = (
        "Principal = User:ANONYMOUS is Allowed Operation = Write from host = 10.0.0.9 on resource = "
        "Topic:LITERAL:visits for request = Produce with resourceRefCount = 1"
    )
    assert caplog.messages == [line] * 3


def test_a_produce_costs_what_it_costs_without_an_authorizer(core: BrokerCore) -> None:
    assert calls_per_request(core, produces()) <= SHORT_PRODUCE
    assert calls_per_request(core, two_partitions(VERSION)) <= TWO_PARTITIONS_PRODUCE


def test_a_commit_costs_what_it_costs_without_an_authorizer(groups: GroupCore) -> None:
    frames = [commit_frame(COMMIT_VERSION, n, [("visits", 0, n)]) for n in range(2 * RUNS)]
    assert calls_per_request(groups, frames) <= INLINE_COMMIT
