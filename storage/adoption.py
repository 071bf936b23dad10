"""Adopting a directory that a Kafka 3.x on ZooKeeper has written: what can be learnt from its files.

The topics' configurations are not among them: they live in ZooKeeper. Guessing would delete data, so an adopted topic
is kept without retention and without compaction until the operator sets its configuration; one that Kafka compacted (it
stands in `cleaner-offset-checkpoint`) goes on being compacted, which is safe because it has been. Kafka's own internal
topics have a configuration that is known.

    folders                       topics and partition counts
    partition.metadata            topic ids (since 2.8)
    leader-epoch-checkpoint       the highest leader epoch known; the next leader must have a higher one (KIP-101)
    meta.properties               broker and cluster id; read by `LogDirectories.lock`
"""

import errno
import logging
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kavka.config.topic_config import KEPT
from kavka.storage import leader_epochs, partition_metadata
from kavka.storage.files import Files
from kavka.storage.found_folders import FoundFolders
from kavka.storage.log_loading import find_folders, refuse_duplicates
from kavka.storage.meta_properties import META_PROPERTIES_FILE
from kavka.storage.offset_checkpoint import CLEANER_OFFSET_FILE, CorruptCheckpointError, OffsetCheckpoint

_log: Final = logging.getLogger(__name__)

MAX_PARTITIONS_ELSEWHERE: Final = 10_000
"""Partitions of an adopted topic that have no folder here and are made empty."""

COMPACTED: Final = {"cleanup.policy": "compact"}
INTERNAL: Final = {
    "__consumer_offsets": {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"},
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    },
}


class AdoptionError(Exception):
    """The directories contradict themselves; the message names the folders."""


class AdoptedTopic(NamedTuple):
    """A topic that was found.

    `topic_id`: None if Kafka was older than topic ids. `leader_epochs`: for each partition found, the epoch that its
    next leader is to have. `partition_count`: one more than the highest partition found; those not in `leader_epochs`
    lay on other brokers, and start empty. `config`: what to keep it with until the operator says otherwise.
    """

    name: str
    topic_id: bytes | None
    partition_count: int
    leader_epochs: Mapping[int, int]
    config: Mapping[str, str]


def survey(
    directories: Iterable[Path],
    files: Files,
    *,
    known: Mapping[str, bytes | None] | None = None,
    need_owner: bool = False,
) -> list[AdoptedTopic]:
    """The topics whose logs lie in the directories, by name, but for those that the registry has (`known`: names, ids).

    `need_owner`: refuse logs in a directory without meta.properties, which every Kafka since 0.8.2 writes before them.
    Reads small files only and changes nothing. Raises AdoptionError, DuplicatePartitionError, OSError.
    """
    known = known or {}
    paths = list(directories)
    found = [_unknown(find_folders(path, files), known) for path in paths]
    refuse_duplicates(found)
    for path, logs in zip(paths, found, strict=True):
        if need_owner and logs.logs and not files.exists(path / META_PROPERTIES_FILE):
            named = ", ".join(sorted(folder.name for folder in logs.logs.values())[:5])
            raise AdoptionError(
                f"{path} holds logs ({named}), but no {META_PROPERTIES_FILE} that says whose they are: "
                "kavka storage adopt takes them over, or choose other log.dirs"
            )
    compacted = {topic for path in paths for topic in _compacted_topics(path, files)}
    folders: dict[str, dict[int, Path]] = {}
    for logs in found:
        for (topic, partition), folder in logs.logs.items():
            folders.setdefault(topic, {})[partition] = folder
    topics = [_adopted(topic, folders[topic], topic in compacted, files) for topic in sorted(folders)]
    _refuse_copies({**known, **{topic.name: topic.topic_id for topic in topics}})
    return topics


def may_be_owned(directory: Path, files: Files) -> bool:
    """Whether a directory that can't be used is somebody's, as far as it can be read, or nobody is allowed to look.

    No: it is not there, is no directory, or its disk does not say.
    """
    try:
        return bool(find_folders(directory, files).logs) or files.exists(directory / META_PROPERTIES_FILE)
    except OSError as error:
        return error.errno in {errno.EACCES, errno.EPERM}


def _refuse_copies(topic_ids: Mapping[str, bytes | None]) -> None:
    """A copy of a folder under another name would become a topic with the other one's id."""
    owners: dict[bytes, str] = {}
    for topic, topic_id in topic_ids.items():
        if topic_id is not None and owners.setdefault(topic_id, topic) != topic:
            raise AdoptionError(
                f"folders of {owners[topic_id]} and {topic} have one topic id, "
                f"{partition_metadata.topic_id_text(topic_id)}; move away which is a copy of the other"
            )


def _unknown(found: FoundFolders, known: Container[str]) -> FoundFolders:
    return found._replace(logs={key: folder for key, folder in found.logs.items() if key[0] not in known})


def _adopted(topic: str, folders: Mapping[int, Path], compacted: bool, files: Files) -> AdoptedTopic:
    if max(folders) + 1 - len(folders) > MAX_PARTITIONS_ELSEWHERE:
        raise AdoptionError(
            f"{folders[max(folders)]} would make {topic} a topic of {max(folders) + 1} partitions, of which "
            f"{len(folders)} lie here; move the folder away if it is none of the topic's"
        )
    return AdoptedTopic(
        topic,
        _one_topic_id(folders, files),
        max(folders) + 1,
        {partition: _latest_epoch(folder, files) + 1 for partition, folder in sorted(folders.items())},
        INTERNAL.get(topic, COMPACTED if compacted else KEPT),
    )


def _one_topic_id(folders: Mapping[int, Path], files: Files) -> bytes | None:
    owners: dict[bytes, Path] = {}
    for folder in folders.values():
        path = folder / partition_metadata.FILE_NAME
        try:
            topic_id = partition_metadata.decode(files.read_bytes(path, partition_metadata.MAX_FILE_BYTES))
        except FileNotFoundError:
            continue
        except partition_metadata.CorruptPartitionMetadataError as error:
            raise AdoptionError(f"{path}: {error}") from None
        owners.setdefault(topic_id, folder)
    if len(owners) > 1:
        named = ", ".join(f"{folder} has {partition_metadata.topic_id_text(i)}" for i, folder in owners.items())
        raise AdoptionError(f"folders of one name belong to different topics; move the stale ones away: {named}")
    return next(iter(owners), None)


def _latest_epoch(folder: Path, files: Files) -> int:
    """-1 if nothing is known: the folder was never led, or by a Kafka before 0.11."""
    try:
        epochs = leader_epochs.decode(files.read_bytes(folder / leader_epochs.FILE_NAME, leader_epochs.MAX_FILE_BYTES))
    except FileNotFoundError:
        return -1
    except leader_epochs.CorruptEpochsError as error:
        raise AdoptionError(f"{folder / leader_epochs.FILE_NAME}: {error}") from None
    return epochs.latest_epoch


def _compacted_topics(directory: Path, files: Files) -> set[str]:
    try:
        return {topic for topic, _ in OffsetCheckpoint(directory / CLEANER_OFFSET_FILE, files).read()}
    except CorruptCheckpointError as error:
        raise AdoptionError(f"which topics are compacted can't be told: {error}") from None
