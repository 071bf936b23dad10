"""The group coordinator for handlers under test: one shard on stage, reached as handlers reach the real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kavka.coordinator.group.shard import GroupShard
from kavka.coordinator.runtime.result import Result
from kavka.coordinator.runtime.runtime import LoadTimes
from kavka.coordinator.runtime.shard_runner import ShardState
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.offset_stage import OffsetStage

Operation = Callable[[GroupShard], Result]
Refused = Callable[[BrokerError], None]


class StagedGroups:
    """Stands for `services.groups`. `refuse`: what each operation is refused with; `asked`: the group ids, in order."""

    def __init__(self, stage: OffsetStage | None = None) -> None:
        self.stage = stage or OffsetStage()
        self.refuse: BrokerError | None = None
        self.asked: list[str] = []
        self.existing_runtime: Any = _Runtime(self)

    def run(self, group_id: str, operation: Operation, refused: Refused) -> None:
        self.asked.append(group_id)
        self.run_shard(operation, refused)

    def run_shard(self, operation: Operation, refused: Refused) -> None:
        if self.refuse is not None:
            refused(self.refuse)
        else:
            self.stage.run(operation, refused)

    def partition_of(self, group_id: str) -> int:
        return len(group_id)


class _Runtime:
    def __init__(self, groups: StagedGroups) -> None:
        self._groups = groups
        self.load_times = LoadTimes()

    def states(self) -> dict[int, ShardState]:
        return {4: ShardState.ACTIVE}

    def run(self, partition: int, operation: Operation, refused: Refused) -> None:
        assert partition in self.states()
        self._groups.run_shard(operation, refused)

    def shards(self) -> list[GroupShard]:
        return [self._groups.stage.shard]


class StagedTransactions:
    """Stands for `services.transactions`; answers `code` and `guard` to whoever asks."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE, guard: int = 0) -> None:
        self.code = code
        self.guard = guard
        self.asked: list[tuple[Any, ...]] = []

    def admit_offsets(self, *asked: Any) -> None:
        *question, done = asked
        self.asked.append(tuple(question))
        done(self.code, self.guard)
