"""Manifests that somebody else wrote, or a broken disk: an error that names the file, never a crash."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka.pipeline.lake.commit import decoded
from kavka.pipeline.lake.errors import ManifestError
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.manifest import HOUR_MS, LEAST_VERSIONS, Manifest
from kavka.pipeline.lake.state import LakeState
from tests.support.lakes import append, new_manifest

GARBAGE: list[Any] = [None, True, -1, 1.5, 2**63, "x", [], {}, [[]], {"a": 1}, [None], {"visits": {"x": [0, 1]}}]


def _commit() -> dict[str, Any]:
    return {
        "format": 1,
        "version": 1,
        "kind": "append",
        "time_ms": 5,
        "query": "q",
        "batch": 0,
        "sequence": 1,
        "ranges": {"visits": {"0": [0, 10]}},
        "specs": {"0": [["date", "timestamp", "day"]]},
        "schemas": {"0": [["topic", "string"]]},
        "add": [_file()],
    }


def _file() -> dict[str, Any]:
    return {
        "path": "data/date=2024-10-04/part-1.parquet",
        "rows": 10,
        "size_bytes": 100,
        "spec": 0,
        "schema": 0,
        "sequence": 1,
        "partition": {"date": "2024-10-04"},
        "offsets": {"visits": {"0": [0, 9, 10]}},
        "timestamps_us": [1, 2],
    }


def _read(table: object) -> None:
    LakeState().apply(decoded(json.dumps(table).encode(), "here.json"), "here.json")


def test_the_example_itself_is_read() -> None:
    _read(_commit())


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
@pytest.mark.parametrize("field", [name for name in _commit() if name not in ("time_ms", "batch", "query")])
def test_a_field_of_another_kind_names_the_file(field: str, garbage: object) -> None:
    if (field, garbage) in (("specs", {}), ("schemas", {}), ("add", []), ("ranges", {})):
        return
    with pytest.raises(ManifestError, match=r"^here\.json: "):
        _read(_commit() | {field: garbage})


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
@pytest.mark.parametrize("field", list(_file()))
def test_a_field_of_a_file_of_another_kind_names_the_manifest(field: str, garbage: object) -> None:
    if (field, garbage) == ("partition", {}):
        return
    with pytest.raises(ManifestError, match=r"^here\.json: "):
        _read(_commit() | {"add": [_file() | {field: garbage}]})


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "data/../../x.parquet", "data//x", "data/./x", "other/x", "data/", "data/a\0b", "data/.."]
)
def test_a_path_that_leads_out_of_the_data_is_refused(path: str) -> None:
    with pytest.raises(ManifestError, match=r"here\.json: path: "):
        _read(_commit() | {"add": [_file() | {"path": path}]})


@given(st.binary(max_size=200))
def test_random_bytes_are_an_error(data: bytes) -> None:
    for read in (decoded, LakeState.decoded):
        with pytest.raises(ManifestError, match=r"here\.json"):
            read(data, "here.json")


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"format":' + b"9" * 5000 + b"}", b'{"format": NaN}', b"\xff\xfe"])
def test_deep_and_long_json_is_an_error(data: bytes) -> None:
    with pytest.raises(ManifestError, match=r"here\.json"):
        decoded(data, "here.json")


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_is_an_error_or_another_commit(position: int, value: int) -> None:
    data = bytearray(json.dumps(_commit()).encode())
    data[position % len(data)] = value
    with contextlib.suppress(ManifestError):
        assert decoded(bytes(data), "here.json").version > 0


def test_a_newer_layout_says_so() -> None:
    with pytest.raises(ManifestError, match="use a newer Kavka"):
        _read(_commit() | {"format": 2})


def test_a_cut_off_version_names_its_file(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    append(manifest, 0, 10)
    path = manifest.layout.commit(1)
    path.write_bytes(path.read_bytes()[:-10])

    with pytest.raises(ManifestError, match=r"00000000000000000001\.json: it is not JSON"):
        Lake(tmp_path)


def test_a_missing_version_is_named(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    for start in range(0, 30, 10):
        append(manifest, start, start + 10)
    manifest.layout.commit(2).unlink()

    with pytest.raises(ManifestError, match=r"00000000000000000002\.json: it is missing"):
        Lake(tmp_path)


def test_a_version_under_another_name_is_an_error(tmp_path: Path) -> None:
    manifest = new_manifest(tmp_path)
    append(manifest, 0, 10)
    manifest.layout.commit(2).write_bytes(manifest.layout.commit(1).read_bytes())

    with pytest.raises(ManifestError, match=r"00000000000000000002\.json: it is version 1 and not 2"):
        Lake(tmp_path)


def _with_checkpoints(lake: Path, count: int) -> Manifest:
    """A lake whose versions are removed as soon as checkpoints stand for them."""
    manifest = new_manifest(lake)
    for start in range(LEAST_VERSIONS * count + 2):
        append(manifest, start, start + 1)
        manifest.checkpoint_if_due("archive", -HOUR_MS)
    assert not manifest.layout.commit(1).exists()
    return manifest


@pytest.mark.parametrize("garbage", [b"", b"{}", b"\xff" * 100, b'{"format": 1, "version": 3}'])
def test_a_garbled_checkpoint_is_passed_over_for_the_one_before(
    tmp_path: Path, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = _with_checkpoints(tmp_path, 3)
    whole = Lake(tmp_path)
    path = manifest.layout.checkpoint(LEAST_VERSIONS * 3)
    path.write_bytes(garbage)

    found = Lake(tmp_path)
    assert (found.version, found.files(), found.next_offsets()) == (whole.version, whole.files(), whole.next_offsets())
    found.refresh()
    assert caplog.text.count("an earlier checkpoint is read") == 1

    # Whoever writes on keeps the readable one until there are two again.
    writer = Manifest(manifest.layout)
    for start in range(whole.version, whole.version + 2 * LEAST_VERSIONS):
        append(writer, start, start + 1)
        writer.checkpoint_if_due("archive", -HOUR_MS)
        assert Lake(tmp_path).version == start + 1


def test_a_garbled_checkpoint_is_named_where_nothing_stands_for_it(tmp_path: Path) -> None:
    manifest = _with_checkpoints(tmp_path, 3)
    for count in (2, 3):
        manifest.layout.checkpoint(LEAST_VERSIONS * count).write_bytes(b"{}")

    with pytest.raises(ManifestError, match=r"00030\.checkpoint\.json: format: "):
        Lake(tmp_path)


def test_a_checkpoint_of_a_newer_layout_is_not_passed_over(tmp_path: Path) -> None:
    manifest = _with_checkpoints(tmp_path, 3)
    manifest.layout.checkpoint(LEAST_VERSIONS * 3).write_bytes(b'{"format": 2}')

    with pytest.raises(ManifestError, match="use a newer Kavka"):
        Lake(tmp_path)
