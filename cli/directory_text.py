"""What lies in a log directory, as text. Reads names and sizes only, beside a running broker too."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kavka.storage.files import Files
from kavka.storage.log_directory import CLEAN_SHUTDOWN_FILE
from kavka.storage.log_loading import find_folders
from kavka.storage.meta_properties import MetaPropertiesError, read_meta_properties


class TopicSummary(NamedTuple):
    """A topic's part in one directory."""

    topic: str
    partitions: int
    segments: int
    size_bytes: int


def directory_lines(directory: Path) -> Iterator[str]:
    """Whose directory it is, how it was left, and its topics. Raises OSError."""
    files = Files()
    found = find_folders(directory, files)
    topics = summarize(found.logs, files)
    yield f"{directory}"
    yield f"  owner       {_owner(directory, files)}"
    yield f"  last stop   {'clean' if files.exists(directory / CLEAN_SHUTDOWN_FILE) else 'unclean, or still in use'}"
    moving = f", {len(found.futures)} on their way here" if found.futures else ""
    yield f"  partitions  {len(found.logs)} in {len(topics)} topics, {len(found.deleted)} waiting to be deleted{moving}"
    yield f"  size        {sum(topic.size_bytes for topic in topics):,} bytes"
    if topics:
        width = max(len("topic"), *(len(topic.topic) for topic in topics))
        yield f"  {'topic':{width}}  {'partitions':>10}  {'segments':>8}  {'bytes':>18}"
        for topic in topics:
            yield f"  {topic.topic:{width}}  {topic.partitions:>10}  {topic.segments:>8}  {topic.size_bytes:>18,}"


def summarize(logs: dict[tuple[str, int], Path], files: Files) -> list[TopicSummary]:
    """The topics of the partition folders, by name; the sizes are those of the `.log` files. Raises OSError."""
    totals: dict[str, TopicSummary] = {}
    for (topic, _), folder in logs.items():
        sizes = [_size(folder / name, files) for name in files.listdir(folder) if name.endswith(".log")]
        _, partitions, segments, size_bytes = totals.get(topic, TopicSummary(topic, 0, 0, 0))
        totals[topic] = TopicSummary(topic, partitions + 1, segments + len(sizes), size_bytes + sum(sizes))
    return [totals[topic] for topic in sorted(totals)]


def _size(path: Path, files: Files) -> int:
    try:
        return files.size(path)
    except FileNotFoundError:
        return 0  # a running broker's retention was quicker


def _owner(directory: Path, files: Files) -> str:
    try:
        owner = read_meta_properties(directory, files)
    except MetaPropertiesError as error:
        return f"unknown: {error}"
    if owner is None:
        return "nobody yet"
    return f"broker.id={owner.broker_id} cluster.id={owner.cluster_id}"
