"""The log of the simulation does what a real one does, in any order of steps, over restarts."""

import random
from pathlib import Path
from typing import Any

import pytest

from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.records.batch import iter_batch_headers
from kavka.storage.partition_log import PartitionLog
from tests.simulation.model_log import Config, Disk, Entry, ModelLog
from tests.support.partition_logs import batch_of, open_log

KEY = ("visits", 0)
STEPS = 60


class Both:
    """A real log and the model, told the same."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.real: PartitionLog = open_log(directory)
        self.disk = Disk()
        self.model = self.disk.logs[KEY] = ModelLog(Config())

    def tell(self, method: str, *arguments: Any) -> None:
        """Both do it, or both refuse it with the same error."""
        outcomes: list[ErrorCode | None] = []
        for log in (self.real, self.model):
            try:
                getattr(log, method)(*arguments)
                outcomes.append(None)
            except BrokerError as refused:
                outcomes.append(refused.code)
        assert outcomes[0] == outcomes[1], (method, arguments, outcomes)

    def append(self, epoch: int, value: int) -> None:
        refusals: list[ErrorCode | None] = []
        for log, records in ((self.real, memoryview(batch_of(b"%d" % value))), (self.model, value)):
            leader: Any = log
            try:
                leader.append_as_leader(records, leader_epoch=epoch, now_ms=0)
                refusals.append(None)
            except BrokerError as refused:
                refusals.append(refused.code)
        assert refusals[0] == refusals[1]

    def copy(self, entries: list[Entry], epoch: int) -> None:
        end_offset = self.model.log_end_offset
        batches = b"".join(
            bytes(batch_of(b"%d" % value, base_offset=end_offset + at, leader_epoch=own))
            for at, (own, value) in enumerate(entries)
        )
        refusals: list[ErrorCode | None] = []
        for log, records in ((self.real, batches), (self.model, entries)):
            follower: Any = log
            try:
                follower.append_as_follower(records, epoch)
                refusals.append(None)
            except BrokerError as refused:
                refusals.append(refused.code)
        assert refusals[0] == refusals[1], (entries, epoch)

    def crash(self) -> None:
        """kill -9: the page cache stays."""
        recovery_point, checkpoint = self.real.recovery_point, self.model.checkpoint
        self.real.close(clean=False)
        self.disk.crash(is_power_cut=False)
        self.model = self.disk.logs[KEY]
        self.real = open_log(self.directory, clean=False, recovery_point=recovery_point)
        self.real.set_high_watermark(checkpoint)

    def compare(self) -> None:
        real, model = self.real, self.model
        assert real.log_end_offset == model.log_end_offset
        assert real.high_watermark == model.high_watermark
        assert real.epochs.entries == model.epochs.entries
        for epoch in range(-1, 8):
            assert real.end_offset_for_epoch(epoch) == model.end_offset_for_epoch(epoch)
        data = real.read(0, 1 << 20, min_one=True, end_offset=real.log_end_offset).read_bytes()
        found = [header.partition_leader_epoch for _, header in iter_batch_headers(data)]
        assert found == [epoch for epoch, _ in model.entries]


@pytest.mark.parametrize("seed", range(12))
def test_both_logs_do_the_same(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    both = Both(tmp_path)
    epoch = 0
    both.tell("follow_leader_epoch", epoch)
    for value in range(STEPS):
        step = dice.randrange(11)
        if step == 0:
            epoch += dice.randrange(3)
            both.tell("begin_leader_epoch", epoch)
        elif step == 1:
            epoch += dice.randrange(3)
            both.tell("follow_leader_epoch", epoch)
        elif step in (2, 3):
            both.append(max(epoch - dice.randrange(6) // 5, 0), value)
        elif step in (4, 5, 6):
            first = max(both.model.epochs.latest_epoch, 0)
            epochs = sorted(dice.randint(first, max(first, epoch + 1)) for _ in range(dice.randrange(1, 4)))
            both.copy([(each, value) for each in epochs], epoch)
        elif step == 7:
            both.tell("truncate_to", dice.randrange(both.model.log_end_offset + 2), epoch)
        elif step == 8:
            both.tell("follow", dice.randrange(both.model.log_end_offset + 2), 0, epoch)
        elif step == 9:
            both.tell("advance_high_watermark", dice.randrange(both.model.log_end_offset + 2))
            both.model.checkpoint_high_watermark()
            both.tell("flush")
        else:
            both.crash()
            both.compare()
            # Nobody appends before the controller has spoken.
            both.tell("follow_leader_epoch", epoch)
        both.compare()
    both.real.close()
