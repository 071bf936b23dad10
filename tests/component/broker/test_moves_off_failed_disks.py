"""Replicas that are on their way to another log directory when their own fails."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka.storage.files import AnyPath
from tests.component.broker.test_replica_manager import ME, TIMEOUT_S, Rig
from tests.support.moving_logs import begin, finish, other_directory
from tests.support.processes import wait_until


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.logs.manager.close()


def test_a_log_that_is_in_the_last_step_of_its_move_off_a_failed_directory_is_led_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.order((0, ME, 0))
    source, target = rig.directory_of(0), other_directory(rig.logs.manager).path
    failing = threading.Thread(target=rig.fail, args=[source])
    fsync_directory = rig.files.fsync_directory

    def fails_meanwhile(path: AnyPath) -> None:
        if path == target and (target / "visits-0").exists() and failing.ident is None:
            failing.start()
            wait_until(lambda: rig.replicas._lock.locked() or not failing.is_alive(), TIMEOUT_S, "nobody hears of it")
        fsync_directory(path)

    monkeypatch.setattr(rig.files, "fsync_directory", fails_meanwhile)
    finish(begin(rig.logs.manager))
    failing.join(TIMEOUT_S)

    partition = rig.partition(0)
    assert (partition.is_offline, partition.role.is_leader, rig.directory_of(0)) == (False, True, target)
