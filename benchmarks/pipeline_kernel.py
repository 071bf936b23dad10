"""What Arrow columns of a log cost: records a second of processor time, by the kernel and by the reader without it.

    python -m benchmarks.pipeline_kernel

Batches of 100 B values with keys lie in memory, and are handed over in pieces of 4 MiB; every column but headers is
made, and checksums are compared. `files` reads the same from a segment file, `numpy` is the consumer's decoding. The
best run of each counts, as others on the machine can only make it worse. The first run may compile.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from kavka.client.consumer.decoding import Rules, decoded
from kavka.client.topic_partition import TopicPartition
from kavka.pipeline.arrow.decoding import RangeDecoder
from kavka.pipeline.arrow.rows import FIELDS, record_batch
from kavka.pipeline.files.isolation import READ_COMMITTED
from kavka.pipeline.files.partition_reader import read
from kavka.protocol.records.batch import Record, build_batch
from kavka.protocol.records.compression import Codec

PIECE_BYTES: Final = 4 << 20
COLUMNS: Final = [field.name for field in FIELDS if field.name != "headers"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[20_000, 20], help="records in each batch")
    parser.add_argument("--codecs", nargs="+", default=["none", "lz4"])
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print(f"{'batches of':>10} {'codec':>6} {'kernel':>8} {'files':>8} {'numpy':>8}   M records a second of CPU time")
    for codec in given.codecs:
        for a_batch in given.batches:
            log = filled_log(given.records, a_batch, Codec[codec.upper()])
            with tempfile.TemporaryDirectory() as directory:
                folder = Path(directory, "visits-0")
                folder.mkdir()
                Path(folder, f"{0:020d}.log").write_bytes(log)
                ways = (partial(by_kernel, log), partial(by_files, directory, given.records), partial(by_numpy, log))
                rates = [best_rate(way, given.runs) for way in ways]
            print(f"{a_batch:>10} {codec:>6} " + " ".join(f"{rate:>8.2f}" for rate in rates))


def filled_log(records: int, a_batch: int, codec: Codec) -> bytes:
    """At least so many records, in equal batches."""
    made = [
        Record(timestamp_ms=1_700_000_000_000 + n, key=b"k%07d" % n, value=b"%050d" % n * 2) for n in range(a_batch)
    ]
    batch = build_batch(made, codec=codec)
    log = bytearray()
    for first in range(0, records, a_batch):
        log += first.to_bytes(8, "big") + batch[8:]
    return bytes(log)


def by_kernel(log: bytes) -> Iterator[Any]:
    """Piece by piece, as from a file."""
    decoder = RangeDecoder("visits", 0, range(1 << 62), COLUMNS, None)
    position = 0
    while position < len(log):
        yield from decoder.decode(memoryview(log)[position : position + PIECE_BYTES], "memory", position)
        position += decoder.used_bytes


def by_files(directory: str, end: int) -> Iterator[Any]:
    """By the reader of segment files, pages in memory."""
    return read([directory], "visits", 0, 0, end, READ_COMMITTED, COLUMNS)


def by_numpy(log: bytes) -> Iterator[Any]:
    """By the consumer's columns, and Arrow rows of these."""
    for stretch in decoded(TopicPartition("visits", 0), log, 0, (), Rules(only_columns=True), 1):
        if len(stretch):
            yield record_batch(stretch.columns(0, len(stretch)), COLUMNS)


def best_rate(way: Callable[[], Iterator[Any]], runs: int) -> float:
    """Millions of records a second."""
    rates: list[float] = []
    for _ in range(runs):
        before = time.process_time()
        records: int = sum(batch.num_rows for batch in way())
        rates.append(records / (time.process_time() - before) / 1e6)
    return max(rates)


if __name__ == "__main__":
    main()
