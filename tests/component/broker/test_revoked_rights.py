"""Rights that are taken away between two requests on one connection, whichever way these take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.partitions import follower_fetch_session
from kavka.broker.partitions.partition import Partition
from kavka.broker.requests.prepared_fetch import PreparedFetches
from kavka.broker.requests.session import Session
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.services import Services
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern
from kavka.coordinator.runtime.result import Producer
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchResponse
from tests.component.broker.test_follower_sessions import TOPIC, Follower
from tests.component.broker.test_transactional_produce import Stand, batch, partitions_of
from tests.support.broker_core import BrokerCore

NOBODY = Producer(-1, -1)
WRITE, ACT = (AclEntry("User:ANONYMOUS", "Allow", operation, "*") for operation in ("Write", "ClusterAction"))
VISITS = ResourcePattern("Topic", TOPIC)
TRANSACTION = ResourcePattern("TransactionalId", "t")
CLUSTER = ResourcePattern("Cluster", "kafka-cluster")


def made(services: Services) -> AclAuthorizer:
    return AclAuthorizer((), services.changed)


def allow(core: BrokerCore, *granted: tuple[ResourcePattern, AclEntry]) -> None:
    """These ACLs count, and no others."""
    authorizer = core.services.authorizer
    assert isinstance(authorizer, AclAuthorizer)
    authorizer.swap({pattern: frozenset([entry]) for pattern, entry in granted})


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    core = BrokerCore(tmp_path, authorizer=made)
    yield core
    core.close()


@pytest.fixture(autouse=True)
def _undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_fetch_session, "REFRESH_MS", 1 << 40)


def test_a_transactional_batch_behind_others_with_its_id_needs_the_right_to_the_id(core: BrokerCore) -> None:
    core.create(TOPIC)
    stand = Stand(core)
    allow(core, (VISITS, WRITE), (TRANSACTION, WRITE))
    assert stand.codes(11, batch(0)) == [ErrorCode.NONE]

    allow(core, (VISITS, WRITE))
    outside = [batch(-1, NOBODY, transactional=False)] * 3
    assert [stand.codes(11, each) for each in outside] == [[ErrorCode.NONE]] * 3
    assert stand.codes(11, batch(1)) == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    assert core.log(TOPIC).log_end_offset == 4

    allow(core, (VISITS, WRITE), (TRANSACTION, WRITE))
    assert stand.codes(11, batch(1)) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize(
    ("left", "code"),
    [
        ((VISITS, WRITE), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ((TRANSACTION, WRITE), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_nothing_is_appended_that_waited_for_its_coordinator_while_the_right_was_taken_away(
    core: BrokerCore, version: int, left: tuple[ResourcePattern, AclEntry], code: ErrorCode
) -> None:
    core.create(TOPIC)
    stand = Stand(core)
    allow(core, (VISITS, WRITE), (TRANSACTION, WRITE))
    stand.transactions.code = None
    assert stand.produce(version, batch(0)) == b""

    allow(core, left)
    before = len(core.socket.taken)
    stand.transactions.asked[0].answer()
    core.stage.settle()

    answer = bytes(core.socket.taken[before:])
    assert [ErrorCode(each.error_code) for each in partitions_of(version, answer)] == [code]
    assert core.log(TOPIC).log_end_offset == 0

    allow(core, (VISITS, WRITE), (TRANSACTION, WRITE))
    stand.transactions.code = ErrorCode.NONE
    assert stand.codes(version, batch(0)) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", [9, 11, 12])
@pytest.mark.parametrize("is_inline", [False, True])
def test_a_revocation_is_answered_behind_what_is_being_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, is_inline: bool
) -> None:
    core = BrokerCore(tmp_path, authorizer=made, inline=is_inline)
    core.create(TOPIC)
    stand = Stand(core)
    allow(core, (VISITS, WRITE), (TRANSACTION, WRITE))
    ends: list[int] = []
    append = Partition.append

    def revoked_meanwhile(self: Partition, *arguments: Any, **named: Any) -> Any:
        core.services.turns.when_over(lambda: ends.append(core.log(TOPIC).log_end_offset))
        return append(self, *arguments, **named)

    monkeypatch.setattr(Partition, "append", revoked_meanwhile)
    for sequence in range(3):
        assert stand.codes(version, batch(sequence)) == [ErrorCode.NONE]
    assert ends == [1, 2, 3]
    core.close()


def codes(answer: FetchResponse | None) -> dict[int, ErrorCode]:
    assert answer is not None
    assert answer.error_code == ErrorCode.NONE
    return {part.partition_index: ErrorCode(part.error_code) for each in answer.responses for part in each.partitions}


def test_a_follower_that_may_not_be_one_is_refused_every_partition(core: BrokerCore) -> None:
    follower = Follower(core, 3)
    refused = dict.fromkeys(range(3), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    follower.append(1)

    assert codes(follower.send(full=True)) == refused
    follower.got(1)
    assert codes(follower.send()) == refused
    assert core.log(TOPIC, 1).high_watermark == 0, "it is not believed to have anything"


def test_a_follower_goes_on_with_its_session_when_it_may_again(core: BrokerCore) -> None:
    follower = Follower(core, 3)
    allow(core, (CLUSTER, ACT))
    follower.sync()
    follower.append(1)
    assert codes(follower.send()) == {1: ErrorCode.NONE}
    session_id = follower.session_id

    allow(core)
    follower.got(1)
    refused = dict.fromkeys(range(3), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert [codes(follower.send()), codes(follower.send())] == [refused] * 2
    assert core.log(TOPIC, 1).high_watermark == 0

    allow(core, (CLUSTER, ACT))
    assert codes(follower.send()) == dict.fromkeys(range(3), ErrorCode.NONE), "the errors are gone"
    assert core.log(TOPIC, 1).high_watermark == 1
    assert follower.session_id == session_id


def test_the_short_way_of_a_followers_fetch_ends_with_its_right(core: BrokerCore) -> None:
    follower = Follower(core, 1)
    allow(core, (CLUSTER, ACT))
    follower.sync()
    assert follower.send(max_wait_ms=60_000) is None
    assert isinstance(prepared(core), PreparedFetches)
    assert codes(follower.waited(lambda: follower.append(0))) == {0: ErrorCode.NONE}

    allow(core)
    follower.got(0)
    assert codes(follower.send(max_wait_ms=60_000)) == {0: ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert core.log(TOPIC).high_watermark == 0


def prepared(core: BrokerCore) -> object:
    session: Session = core.connection.session
    return session.prepared.get(1)
