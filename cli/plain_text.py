"""The files that are text: checkpoints, `partition.metadata`, `meta.properties`, `.kafka_cleanshutdown`."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kavka.storage import leader_epochs, meta_properties, offset_checkpoint, partition_metadata

MAX_BYTES: Final = offset_checkpoint.MAX_CHECKPOINT_BYTES
_BLANKS: Final = str.maketrans("", "", "\r\n\t\f")


def plain_lines(path: Path) -> Iterator[str]:
    """The file's lines, whatever they say. Raises OSError, ValueError for what is no text or says something else."""
    size_bytes = path.stat().st_size
    if size_bytes > MAX_BYTES:
        raise ValueError(f"{size_bytes} bytes; at most {MAX_BYTES}")
    data = path.read_bytes()
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        raise ValueError("not ASCII text") from None
    if not text.translate(_BLANKS).isprintable():
        raise ValueError("not text: it holds control characters")
    yield from text.splitlines()
    if data:
        _check(path.name, data)


def _check(name: str, data: bytes) -> None:
    """Raises ValueError unless the broker could read it."""
    try:
        _checker_of(name)(data)
    except (
        offset_checkpoint.CorruptCheckpointError,
        leader_epochs.CorruptEpochsError,
        meta_properties.MetaPropertiesError,
        partition_metadata.CorruptPartitionMetadataError,
    ) as error:
        raise ValueError(f"not a valid {name}: {error}") from None


def _checker_of(name: str) -> "Callable[[bytes], object]":
    return BY_NAME.get(name, offset_checkpoint.decode_offsets)


def _clean_shutdown(data: bytes) -> None:
    if not isinstance(json.loads(data), dict):
        raise ValueError("no JSON object")


BY_NAME: "Final[dict[str, Callable[[bytes], object]]]" = {
    leader_epochs.FILE_NAME: leader_epochs.decode,
    meta_properties.META_PROPERTIES_FILE: meta_properties.decode_meta_properties,
    partition_metadata.FILE_NAME: partition_metadata.decode,
    ".kafka_cleanshutdown": _clean_shutdown,
}
