"""What the broker does to its logs from time to time, with several directories."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kavka.broker.background import schedule_passes
from kavka.broker.waiting.scheduler import Scheduler
from kavka.broker.waiting.timer import Timer
from kavka.storage.files import AnyPath, Files
from tests.support.compaction import roll
from tests.support.gate import Gate
from tests.support.log_managers import ID, ManagerRig, append, create_log
from tests.support.processes import wait_until

PATIENCE_S = 60.0
SOON = ("log.initial.task.delay.ms=0", "log.retention.check.interval.ms=10", "log.flush.scheduler.interval.ms=10")


class HangingDirectory(Files):
    """While it is `held`, no file below one directory is renamed."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._gate = Gate()
        self.held = self._gate.held
        self.rename = self._rename

    def _rename(self, source: AnyPath, target: AnyPath) -> None:
        if str(source).startswith(self._directory):
            self._gate.pass_through()
        Path(source).replace(target)


def test_a_directory_that_hangs_keeps_no_other_from_getting_rid_of_what_is_old(tmp_path: Path) -> None:
    """Else the disks of all would be full some day."""
    files = HangingDirectory(tmp_path / "a")
    rig = ManagerRig([tmp_path / "a", tmp_path / "b"], *SOON, files=files)
    rig.overrides["visits"] = {"retention.ms": "1000"}
    manager = rig.start()
    logs = [create_log(manager, "visits", partition, ID) for partition in range(2)]
    assert [log.directory.parent.name for log in logs] == ["a", "b"]
    for log in logs:
        append(log, b"old")
        roll(log)
        log.set_high_watermark(log.log_end_offset)
    rig.now_ms += 2_000
    deaths: list[BaseException] = []
    timer = Timer(deaths.append)
    timer.start()
    scheduler = Scheduler(timer, 10, deaths.append)
    settings: Any = SimpleNamespace(current=rig.broker_config(*SOON))
    sockets: Any = SimpleNamespace(transports=[])
    with files.held():
        schedule_passes(scheduler, manager, settings, sockets)
        wait_until(lambda: logs[1].log_start_offset == 1, PATIENCE_S, "what is old stays")
        assert logs[0].log_start_offset == 0
    wait_until(lambda: logs[0].log_start_offset == 1, PATIENCE_S, "what is old stays when the disk answers")
    scheduler.stop()
    timer.stop()
    manager.close()
    assert deaths == []
