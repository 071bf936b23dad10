"""A topic that was made anew, on a broker that nobody has told of the end of the one before."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.protocol.errors import ErrorCode
from tests.component.broker.test_replica_manager import ME, Rig, codes
from tests.support.broker_handlers import topic_id_of
from tests.support.log_managers import append, read_values

KEY = ("visits", 0)
FORMER, PRESENT = topic_id_of("visits"), topic_id_of("another")


class TellingRig(Rig):
    """`ids`: what the registry says of topics."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.ids: dict[str, bytes] = {}
        self.host()

    def host(self) -> None:
        self.replicas = ReplicaManager(
            ME,
            self.logs.manager,
            lambda partition, leads: self.changes.append((partition.index, leads)),
            topic_ids=self._told,
        )

    def restart(self) -> None:
        """The registry has the present topic."""
        self.logs.manager.close()
        manager = self.logs.make()
        manager.lock_directories()
        manager.load(lambda topic, partition: PRESENT)
        self.host()

    def lead(self, topic_id: bytes) -> int:
        (code,) = codes(self.order((0, ME, 0), topic_id=topic_id))
        return code

    @property
    def strays(self) -> list[Path]:
        return [folder for path in self.paths for folder in path.glob("visits-0.*-stray")]

    def _told(self, names: Collection[str]) -> Mapping[str, bytes]:
        return {name: self.ids[name] for name in names if name in self.ids}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[TellingRig]:
    made = TellingRig(tmp_path)
    assert made.lead(FORMER) is ErrorCode.NONE
    append(made.leaders_log(), b"former")
    yield made
    made.logs.manager.close()


def test_what_it_has_of_that_one_makes_room_and_is_kept(rig: TellingRig) -> None:
    records = (rig.directory_of(0) / "visits-0" / f"{0:020}.log").read_bytes()
    assert rig.lead(PRESENT) is ErrorCode.INCONSISTENT_TOPIC_ID

    rig.ids["visits"] = PRESENT
    assert rig.replicas.retry_refused(), "the controller is to ask again"

    assert (rig.replicas.partitions, rig.changes[-1]) == ({}, (0, False))
    assert rig.lead(PRESENT) is ErrorCode.NONE
    assert read_values(rig.leaders_log()) == []
    (stray,) = rig.strays
    assert (stray / f"{0:020}.log").read_bytes() == records
    assert not rig.replicas.retry_refused()
    append(rig.leaders_log(), b"present")
    rig.restart()
    assert rig.lead(PRESENT) is ErrorCode.NONE
    assert read_values(rig.leaders_log()) == [b"present"]
    assert rig.strays == [stray]


@pytest.mark.parametrize("told", [None, FORMER])
def test_it_stays_unless_the_registry_says_so_too(rig: TellingRig, told: bytes | None) -> None:
    assert rig.lead(PRESENT) is ErrorCode.INCONSISTENT_TOPIC_ID

    if told is not None:
        rig.ids["visits"] = told
    assert not rig.replicas.retry_refused()

    assert rig.partition(0).topic_id == FORMER
    assert (read_values(rig.leaders_log()), rig.strays) == ([b"former"], [])


def test_a_folder_that_a_start_has_left_alone_makes_room_as_well(rig: TellingRig) -> None:
    rig.logs.manager.claim(ME, "cluster")
    rig.restart()
    assert rig.lead(PRESENT) is ErrorCode.KAFKA_STORAGE_ERROR

    rig.ids["visits"] = PRESENT
    assert rig.replicas.retry_refused()

    assert rig.lead(PRESENT) is ErrorCode.NONE
    assert (read_values(rig.leaders_log()), len(rig.strays)) == ([], 1)
