"""A classic group's member over a plain socket: any protocol type, any assignment, each step at the test's word."""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from kavka.protocol.messages.find_coordinator import FindCoordinatorRequest
from kavka.protocol.messages.heartbeat import HeartbeatRequest
from kavka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kavka.protocol.messages.leave_group import LeaveGroupRequest
from kavka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.processes import wait_until
from tests.support.wire import Wire

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, LEAVE_VERSION, FIND_VERSION = 5, 3, 3, 2, 3
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
NOT_YET = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
READY_S = 120.0


@dataclass
class WireMember:
    """`send_join` and `joined` are apart, so that several members can join in one thread. Owned by one thread."""

    wire: Wire
    group_id: str
    protocol_type: str
    protocols: dict[str, bytes]
    session_timeout_ms: int = 30_000
    rebalance_timeout_ms: int = 30_000
    member_id: str = ""
    generation: int = -1
    answer: Any = field(default=None, repr=False)

    def wait_for_coordinator(self) -> None:
        """Until the group's coordinator can be asked; the first question makes the internal topic."""
        asked = FindCoordinatorRequest(key=self.group_id)
        wait_until(lambda: self.wire.ask(asked, FIND_VERSION).error_code == 0, READY_S, "no coordinator")

    def register(self) -> None:
        """Get a member id, as a client's first JoinGroup does; patiently, while the coordinator reads its log."""

        def asked() -> bool:
            self.send_join()
            code = self.joined()
            assert code in (MEMBER_ID_REQUIRED, *NOT_YET), f"error {code}: {self.answer}"
            return code == MEMBER_ID_REQUIRED

        wait_until(asked, READY_S, "the coordinator is not ready")

    def send_join(self) -> None:
        rows = [JoinGroupRequestProtocol(name=name, metadata=data) for name, data in self.protocols.items()]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            protocol_type=self.protocol_type,
            protocols=rows,
        )
        self.wire.send(request, JOIN_VERSION)

    def joined(self) -> int:
        """The answer's error code; generation and member id are kept."""
        self.answer = self.wire.receive(11, JOIN_VERSION)
        self.member_id = self.answer.member_id or self.member_id
        self.generation = self.answer.generation_id
        return int(self.answer.error_code)

    def send_sync(self, assignments: dict[str, bytes] | None = None) -> None:
        rows = [
            SyncGroupRequestAssignment(member_id=name, assignment=data) for name, data in (assignments or {}).items()
        ]
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=self.member_id, assignments=rows
        )
        self.wire.send(request, SYNC_VERSION)

    def synced(self) -> tuple[int, bytes]:
        """The answer's error code and the assignment."""
        answer = self.wire.receive(14, SYNC_VERSION)
        return int(answer.error_code), bytes(answer.assignment)

    def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id=self.group_id, generation_id=self.generation, member_id=self.member_id)
        return int(self.wire.ask(request, HEARTBEAT_VERSION).error_code)

    def wait_for_rebalance(self) -> None:
        """Until a heartbeat says that it must join again: a join on another connection has arrived by then."""
        wait_until(lambda: self.heartbeat() == REBALANCE_IN_PROGRESS, READY_S, "no rebalance begins")

    def leave(self) -> int:
        request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        return int(self.wire.ask(request, LEAVE_VERSION).error_code)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wire.close()
