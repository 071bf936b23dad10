"""Every request in every state, as one table; and which state may follow which."""

from collections.abc import Callable

import pytest

from kavka.coordinator.group.classic.group import ClassicGroup
from kavka.coordinator.group.classic.states import VALID_PREVIOUS, ClassicState
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.classic_stage import ClassicStage
from tests.support.coordinator_stage import Asked, StillClock

OK = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
STALE = ErrorCode.ILLEGAL_GENERATION
GONE = ErrorCode.COORDINATOR_NOT_AVAILABLE
ID_REQUIRED = ErrorCode.MEMBER_ID_REQUIRED
WAITS = "waits"

# Columns: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead. Two members; "leader" and "follower" are theirs
# (or were, in Empty), and the generation is theirs.
TABLE = {
    "join without id": (ID_REQUIRED, ID_REQUIRED, ID_REQUIRED, ID_REQUIRED, GONE),
    "join of a new static member": (WAITS, WAITS, WAITS, WAITS, GONE),
    "join of an unknown id": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "join of the leader": (UNKNOWN, WAITS, OK, WAITS, GONE),
    "join of a follower": (UNKNOWN, WAITS, OK, OK, GONE),
    "join of a follower, changed": (UNKNOWN, WAITS, WAITS, WAITS, GONE),
    "sync of the leader": (UNKNOWN, REBALANCE, OK, OK, GONE),
    "sync of a follower": (UNKNOWN, REBALANCE, WAITS, OK, GONE),
    "sync of an unknown id": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "sync of another generation": (UNKNOWN, STALE, STALE, STALE, GONE),
    "heartbeat": (UNKNOWN, REBALANCE, OK, OK, GONE),
    "heartbeat of an unknown id": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "heartbeat of another generation": (UNKNOWN, STALE, STALE, STALE, GONE),
    "leave": (UNKNOWN, OK, OK, OK, GONE),
    "leave of an unknown id": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit of a member": (UNKNOWN, OK, REBALANCE, OK, GONE),
    "commit of another generation": (UNKNOWN, STALE, STALE, STALE, GONE),
    "commit of a standalone consumer": (OK, UNKNOWN, UNKNOWN, UNKNOWN, GONE),
    "commit in a transaction": (UNKNOWN, OK, OK, OK, GONE),
    "commit in a transaction of nobody": (OK, OK, OK, OK, GONE),
    "delete": (OK, *(ErrorCode.NON_EMPTY_GROUP,) * 3, ErrorCode.GROUP_ID_NOT_FOUND),
    "delete of offsets": (OK, OK, OK, OK, ErrorCode.GROUP_ID_NOT_FOUND),
    "fetch of offsets": (OK, OK, OK, OK, ErrorCode.GROUP_ID_NOT_FOUND),
}
STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
CASES = [
    (request, state, expected) for request, row in TABLE.items() for state, expected in zip(STATES, row, strict=True)
]


@pytest.mark.parametrize(("request_name", "state", "expected"), CASES, ids=str)
def test_a_request_in_a_state(request_name: str, state: str, expected: ErrorCode | str) -> None:
    stage = ClassicStage()
    leader, follower, generation = in_state(stage, state)

    assert outcome(stage, REQUESTS[request_name], leader, follower, generation) == expected


def in_state(stage: ClassicStage, state: str) -> tuple[str, str, int]:
    if state == "CompletingRebalance":
        ids = [stage.new()[0] for _ in range(2)]
        stage.advance(9_000)
    else:
        ids = stage.stable(2)
    if state == "Empty":
        stage.leave(*ids)
    elif state == "PreparingRebalance":
        stage.join()
        stage.join(ids[0])
        stage.join(ids[1])
    elif state == "Dead":
        stage.group().move_to(ClassicState.DEAD, "the test says so")
    assert stage.state == state
    return ids[0], ids[1], stage.group().generation


def commit(stage: ClassicStage, member_id: str, generation: int, transactional: bool = False) -> None:
    stage.group().validate_offset_commit(member_id, None, generation, transactional=transactional, api_version=8)


Ask = Callable[[ClassicStage, str, str, int], object]
REQUESTS: dict[str, Ask] = {
    "join without id": lambda stage, *_: stage.join(),
    "join of a new static member": lambda stage, *_: stage.join(instance_id="new"),
    "join of an unknown id": lambda stage, *_: stage.join("stranger"),
    "join of the leader": lambda stage, leader, *_: stage.join(leader),
    "join of a follower": lambda stage, _, follower, __: stage.join(follower),
    "join of a follower, changed": lambda stage, _, follower, __: stage.join(follower, protocols=(("range", b"x"),)),
    "sync of the leader": lambda stage, leader, _, generation: stage.sync(leader, generation, {}),
    "sync of a follower": lambda stage, _, follower, generation: stage.sync(follower, generation, protocol_name=None),
    "sync of an unknown id": lambda stage, _, __, generation: stage.sync("stranger", generation),
    "sync of another generation": lambda stage, leader, _, generation: stage.sync(leader, generation + 1, {}),
    "heartbeat": lambda stage, leader, _, generation: stage.heartbeat(leader, generation),
    "heartbeat of an unknown id": lambda stage, _, __, generation: stage.heartbeat("stranger", generation),
    "heartbeat of another generation": lambda stage, leader, _, generation: stage.heartbeat(leader, generation - 1),
    "leave": lambda stage, leader, *_: stage.leave(leader, version=2),
    "leave of an unknown id": lambda stage, *_: stage.leave("stranger", version=2),
    "commit of a member": lambda stage, leader, _, generation: commit(stage, leader, generation),
    "commit of another generation": lambda stage, leader, _, generation: commit(stage, leader, generation + 1),
    "commit of a standalone consumer": lambda stage, *_: commit(stage, "", -1),
    "commit in a transaction": lambda stage, leader, _, generation: commit(stage, leader, generation, True),
    "commit in a transaction of nobody": lambda stage, *_: commit(stage, "", -1, True),
    "delete": lambda stage, *_: stage.group().validate_delete(),
    "delete of offsets": lambda stage, *_: stage.group().validate_offset_delete(),
    "fetch of offsets": lambda stage, *_: stage.group().validate_offset_fetch(None, -1),
}


def outcome(stage: ClassicStage, ask: Ask, leader: str, follower: str, generation: int) -> ErrorCode | str:
    try:
        asked = ask(stage, leader, follower, generation)
    except BrokerError as error:
        return error.code
    if isinstance(asked, Asked):
        return WAITS if asked.waits else ErrorCode(asked.answer.error_code)
    return ErrorCode(asked) if isinstance(asked, int) else OK


def test_every_request_is_in_the_table() -> None:
    assert REQUESTS.keys() == TABLE.keys()


@pytest.mark.parametrize("old", ClassicState)
@pytest.mark.parametrize("new", ClassicState)
def test_a_state_follows_only_those_it_may_follow(old: ClassicState, new: ClassicState) -> None:
    group = ClassicGroup("g", StillClock())
    group.state = old
    if old in VALID_PREVIOUS[new]:
        group.move_to(new, "a reason")
        assert [(each.old_state, each.new_state) for each in group.history] == [(old.value, new.value)]
    else:
        with pytest.raises(AssertionError, match="may not follow"):
            group.move_to(new, "a reason")
