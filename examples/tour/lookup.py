"""Step 3: how a record is found by its offset: `python -m examples.tour.lookup /tmp/kavka-tour`."""

import argparse
import struct
from bisect import bisect_right
from pathlib import Path
from typing import Final

from examples.tour.connection import NEW_YEAR_MS, Connection
from kavka.protocol.records.builder import build_batch
from kavka.protocol.records.record import Record

TOPIC: Final = "pages"
PAGES: Final = 60
PAGE_BYTES: Final = 1000
SEGMENT_BYTES: Final = 20_000
WANTED: Final = 42
POINTER: Final = "   <--"
HEAD: Final = struct.Struct(">qi")
"""What a batch begins with: its base offset, and how many bytes follow these twelve."""
ENTRY: Final = struct.Struct(">ii")
"""An entry of an offset index: an offset less the segment's base offset, and a position in the segment."""


def fill() -> None:
    """Sixty records of 1,000 bytes, each a batch of its own, a second apart."""
    with Connection() as connection:
        connection.make_topic(TOPIC, segment_bytes=str(SEGMENT_BYTES))
        for number in range(PAGES):
            text = f"page {number}".ljust(PAGE_BYTES, ".").encode()
            record = Record(timestamp_ms=NEW_YEAR_MS + 1000 * number, key=None, value=text)
            connection.produce(TOPIC, build_batch([record]))


def entries(index: Path) -> list[tuple[int, int]]:
    """An offset index's entries. The first batch is not among them: everybody knows where it is."""
    return [(0, 0), *ENTRY.iter_unpack(index.read_bytes())]


def look_up(folder: Path, wanted: int) -> None:
    """Print the way to the batch that has the record `wanted`: a segment, an entry of its index, batch after batch."""
    segments = sorted(folder.glob("*.log"))
    bases = [int(segment.stem) for segment in segments]
    chosen = bisect_right(bases, wanted) - 1
    print(f"1. The segment: the last one whose name is not beyond {wanted}")
    for number, segment in enumerate(segments):
        print(f"     {segment.name}{POINTER if number == chosen else ''}")

    segment, base = segments[chosen], bases[chosen]
    known = entries(segment.with_suffix(".index"))
    nearest = bisect_right([base + relative for relative, _ in known], wanted) - 1
    print(f"2. Its index: the last entry not beyond {wanted}")
    for number, (relative, position) in enumerate(known):
        print(f"     offset {base} + {relative:>2} is at byte {position:>5}{POINTER if number == nearest else ''}")

    print("3. The segment, from there on: batch after batch")
    with segment.open("rb") as log:
        position = known[nearest][1]
        while True:
            log.seek(position)
            base_offset, size = HEAD.unpack(log.read(HEAD.size))
            if base_offset == wanted:
                print(f"     byte {position:>5}: offset {base_offset}{POINTER}")
                return
            print(f"     byte {position:>5}: offset {base_offset}, the next one is {HEAD.size} + {size} bytes on")
            position += HEAD.size + size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log_dir", type=Path, help="the broker's log.dirs")
    log_dir = parser.parse_args().log_dir
    fill()
    look_up(log_dir / f"{TOPIC}-0", WANTED)


if __name__ == "__main__":
    main()
