"""Log directories that cannot be used at a start: the broker goes on with the others, and says what is missing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kavka.broker.server import StartError
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.running_broker import HOST, RunningBroker
from tests.support.wire import RawClient, batch_of, produce

PARTITIONS = 4


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path, {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}) as running:
        yield running


def replace_by_a_file(directory: Path) -> None:
    directory.rename(directory.with_name("away"))
    directory.touch()


def refuse_the_owner(directory: Path) -> None:
    """Its logs can be loaded, and then its owner cannot be written."""
    (directory / "meta.properties").unlink()
    (directory / "meta.properties.tmp").mkdir()


def code_of(client: RawClient, partition: int) -> int:
    """What an append is answered with."""
    code: int = produce(client, "visits", batch_of([b"x"], timestamp_ms=1), partition=partition).error_code
    return code


@pytest.mark.parametrize("breaks", [replace_by_a_file, refuse_the_owner])
def test_one_directory_of_several_is_missing_from_the_start(
    running: RunningBroker, tmp_path: Path, breaks: Callable[[Path], None]
) -> None:
    with RawClient(HOST, running.port) as client:
        client.create_topic("visits", PARTITIONS)
    there = [(tmp_path / "b" / f"visits-{partition}").exists() for partition in range(PARTITIONS)]
    assert any(there)
    assert not all(there)
    running.broker.stop()
    breaks(tmp_path / "b")
    running.errors.expect("goes offline", "cannot host topic=visits", "cannot host . replicas")

    running.start()

    with RawClient(HOST, running.port) as client:
        codes = [code_of(client, number) for number in range(PARTITIONS)]
        described = client.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert [bool(code) for code in codes] == there
    assert {Path(each.log_dir).name: each.error_code for each in described} == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.KAFKA_STORAGE_ERROR,
    }


def test_a_broker_without_a_past_starts_without_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    running = RunningBroker(tmp_path, {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"})
    (tmp_path / "b").touch()
    running.errors.expect("goes offline", "goes offline")
    with running:
        running.restart()
        with RawClient(HOST, running.port) as client:
            client.create_topic("visits", PARTITIONS)
            codes = [code_of(client, number) for number in range(PARTITIONS)]
    assert codes == [ErrorCode.NONE] * PARTITIONS


def test_without_the_first_directory_the_start_says_whose_place_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    running = RunningBroker(tmp_path, {"log.dirs": f"{tmp_path / 'file' / 'a'},{tmp_path / 'b'}"})
    running.errors.expect("goes offline")

    with pytest.raises(StartError, match=r"first of log\.dirs.*Not a directory.*file/a"), running:
        pass
