"""One range's rows, in an executor: from segment files that it sees."""

import socket
from collections.abc import Iterable, Iterator
from typing import Any

from kavka.pipeline.files.errors import LogEndsError, OffsetsGoneError, PartitionMissingError, TopicChangedError
from kavka.pipeline.files.folders import partitions
from kavka.pipeline.files.partition_reader import read
from kavka.pipeline.source.data_loss import report_loss
from kavka.pipeline.source.errors import PathUnseenError
from kavka.pipeline.source.offsets import OffsetRange
from kavka.pipeline.source.read_options import ReadOptions


def rows(offsets: OffsetRange, options: ReadOptions) -> Iterator[Any]:
    """As `range_reading.rows`, with no request to a broker.

    Raises DataLossError, PathUnseenError; PartitionFilesError, CorruptInputError, OSError of the files.
    """
    fails = options.fails_on_data_loss
    position = offsets.start
    while position < offsets.end:
        try:
            yield from read(
                options.directories,
                offsets.topic,
                offsets.partition,
                position,
                offsets.end,
                options.isolation_level,
                options.columns,
            )
        except OffsetsGoneError as gone:
            report_loss(f"{gone}; {offsets} was to be read from {gone.offset} on", fails=fails)
            position = max(gone.first_offset, position)
        except (TopicChangedError, LogEndsError) as failure:
            report_loss(f"{offsets}: {failure}", fails=fails)
            return
        except PartitionMissingError as missing:
            if not _sees_logs(options.directories):
                raise PathUnseenError(f"{socket.gethostname()} does not see the path: {missing}") from missing
            report_loss(f"{offsets}: on {socket.gethostname()}, {missing}", fails=fails)
            return
        else:
            return


def _sees_logs(directories: Iterable[str]) -> bool:
    """Whether another partition lies there: then the path is the right one, and a partition that is missing is gone."""
    try:
        return bool(partitions(directories))
    except FileNotFoundError:
        return False
