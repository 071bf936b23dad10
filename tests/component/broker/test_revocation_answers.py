"""When changes of ACLs are answered: not before what goes on is over, in time whatever hangs, and by whom."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka.broker.requests.turns import Turn
from kavka.broker.security.acl import Operation, ResourceType
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.security.authorizer.kept_acls import KeptAcls
from kavka.broker.security.authorizer.names import PatternType, Permission
from kavka.broker.services import Services
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.timer import Timer
from kavka.cluster.acl_changes import AclChanges
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import ErrorCode
from kavka.protocol.headers import decode_response_header, encode_request_header
from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kavka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from tests.support.group_core import GroupCore
from tests.support.network_stage import SIZE
from tests.support.processes import wait_until
from tests.support.registries import Clock

WAIT_S = 60
TIMEOUT_MS = 30_000
"""What `request.timeout.ms` is by default."""
CREATE, DELETE, VERSION = 30, 31, 3
ANSWERS: dict[int, Any] = {CREATE: CreateAclsResponse, DELETE: DeleteAclsResponse}


class Stand:
    """A broker whose ACLs are changed on a thread, and whose timer's clock the test moves."""

    def __init__(self, directory: Path, *, allows_unmentioned: bool = False) -> None:
        def made(services: Services) -> AclAuthorizer:
            return AclAuthorizer(("User:ANONYMOUS",), services.changed, allows_unmentioned=allows_unmentioned)

        self.deaths: list[BaseException] = []
        self.handed_on: list[Any] = []
        """What is to be done by another thread."""
        self.core = GroupCore(directory, authorizer=made, execute=self.handed_on.append)
        self._registry = MemoryRegistry(MemoryEnsemble(Clock()))
        decides: Any = self.core.services.authorizer
        self.authorizer: AclAuthorizer = decides
        self._changes = AclChanges(self._registry, self.authorizer.swap, Clock(), self.deaths.append)
        self._changes.start()
        self.core.services.acls = KeptAcls(self.authorizer, self._changes)
        self._now_ns = 0
        self._timer = Timer(self.deaths.append, lambda: self._now_ns)
        self._timer.start()
        self.core.services.purgatory = Purgatory(self._timer)
        self.turn = self.core.services.turns.new()
        """That of a thread which runs a request."""

    def close(self) -> None:
        self._changes.stop()
        self._timer.stop()
        self.core.close()
        assert self.deaths == []

    def go_on(self, milliseconds: int) -> None:
        self._now_ns += milliseconds * 1_000_000
        self._timer.look()

    def ask(self, key: int, request: Any) -> None:
        frame = encode_request_header(key, VERSION, 1, "admin") + encode(request, VERSION)
        self.core.socket.input += SIZE.pack(len(frame)) + frame
        self.core.stage.settle()

    def answer(self, key: int) -> Any:
        """The next one, which may be still to come."""
        taken = self.core.socket.taken
        wait_until(lambda: bool(taken), WAIT_S, "no answer")
        data, taken[:] = bytes(taken[4:]), b""
        self.core.stage.settle()
        return decode(ANSWERS[key], VERSION, data, decode_response_header(key, VERSION, data)[1])

    def create(self, permission: Permission, name: str = "orders") -> None:
        wanted = AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal="User:alice",
            host="*",
            operation=Operation.WRITE,
            permission_type=permission,
        )
        self.ask(CREATE, CreateAclsRequest(creations=[wanted]))

    def delete(self) -> None:
        every = DeleteAclsFilter(
            resource_type_filter=ResourceType.ANY,
            resource_name_filter=None,
            pattern_type_filter=PatternType.ANY,
            principal_filter=None,
            host_filter=None,
            operation=Operation.ANY,
            permission_type=Permission.ANY,
        )
        self.ask(DELETE, DeleteAclsRequest(filters=[every]))

    def wait_until_waited_for(self) -> None:
        wait_until(lambda: bool(self.turn.at_end), WAIT_S, "nobody waits for the turn")


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.close()


def codes(answer: Any) -> list[ErrorCode]:
    results = answer.results if isinstance(answer, CreateAclsResponse) else answer.filter_results
    return [ErrorCode(each.error_code) for each in results]


def begin(turn: Turn) -> None:
    turn.goes_on = True


def end(turn: Turn) -> None:
    turn.goes_on = False
    turn.tell()


def test_a_revocation_behind_a_request_that_hangs_is_answered_in_time_and_counts_at_once(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    stand.create(Permission.ALLOW)
    assert codes(stand.answer(CREATE)) == [ErrorCode.NONE]
    begin(stand.turn)
    with caplog.at_level(logging.INFO):
        stand.delete()
        stand.wait_until_waited_for()
    assert stand.authorizer.snapshot.acls == {}
    assert [each.message for each in caplog.records if "ACL deleted" in each.message] != [], "while it waits"

    stand.go_on(TIMEOUT_MS - 1_000)
    stand.core.stage.settle()
    assert not stand.core.socket.taken
    stand.go_on(2_000)
    assert codes(stand.answer(DELETE)) == [ErrorCode.REQUEST_TIMED_OUT]
    assert not stand.turn.at_end, "a request that hangs keeps nothing of it"

    end(stand.turn)
    assert stand.handed_on == []
    stand.delete()
    assert codes(stand.answer(DELETE)) == [ErrorCode.NONE]


def test_what_allows_waits_for_nobody_and_what_denies_does(stand: Stand) -> None:
    begin(stand.turn)
    stand.create(Permission.ALLOW)
    assert codes(stand.answer(CREATE)) == [ErrorCode.NONE]

    stand.create(Permission.DENY)
    stand.wait_until_waited_for()
    assert not stand.core.socket.taken
    end(stand.turn)
    stand.handed_on.pop()()
    assert codes(stand.answer(CREATE)) == [ErrorCode.NONE]


def test_where_everybody_may_what_nobody_mentions_whatever_is_mentioned_waits(tmp_path: Path) -> None:
    stand = Stand(tmp_path, allows_unmentioned=True)
    begin(stand.turn)
    stand.create(Permission.ALLOW)
    stand.wait_until_waited_for()
    assert not stand.core.socket.taken
    end(stand.turn)
    stand.handed_on.pop()()
    assert codes(stand.answer(CREATE)) == [ErrorCode.NONE]
    stand.close()


def test_who_ran_the_last_request_that_is_waited_for_does_not_make_the_answer(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        stand.create(Permission.ALLOW, f"orders-{number}")
        assert codes(stand.answer(CREATE)) == [ErrorCode.NONE]
    begin(stand.turn)
    with caplog.at_level(logging.INFO):
        stand.delete()
        stand.wait_until_waited_for()
        end(stand.turn)
    mine = [each for each in caplog.records if each.thread == threading.get_ident() and "deleted" in each.message]
    assert mine == []
    assert not stand.core.socket.taken
    stand.handed_on.pop()()
    (result,) = stand.answer(DELETE).filter_results
    assert len(result.matching_acls) == 20


def test_a_revocation_that_waits_as_the_broker_stops_is_answered(stand: Stand) -> None:
    begin(stand.turn)
    stand.delete()
    stand.wait_until_waited_for()
    stand.core.services.purgatory.expire_all()
    assert codes(stand.answer(DELETE)) == [ErrorCode.REQUEST_TIMED_OUT]
    assert not stand.turn.at_end
