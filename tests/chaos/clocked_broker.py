"""The `kavka` command with a wall clock that a test moves: `python -m tests.chaos.clocked_broker FILE broker ...`.

FILE has eight bytes, the nanoseconds by which this process's clock is ahead (little-endian, signed); a change shows
at once. The product reads its wall clock from `time.time_ns`, libraries theirs from `time.time`.
"""

import mmap
import sys
import time
from pathlib import Path
from unittest import mock

SIZE_BYTES = 8


def write_shift(file: Path, shift_ns: int) -> None:
    """Move the clock of whoever reads this file."""
    data = shift_ns.to_bytes(SIZE_BYTES, "little", signed=True)
    if not file.exists():
        file.write_bytes(data)
        return
    # In place: it is mapped.
    with file.open("r+b") as target:
        target.write(data)


def main() -> int:
    with Path(sys.argv[1]).open("rb") as file:
        shift = mmap.mmap(file.fileno(), SIZE_BYTES, prot=mmap.PROT_READ)
    real_ns = time.time_ns

    def shifted_ns() -> int:
        return real_ns() + int.from_bytes(shift[:SIZE_BYTES], "little", signed=True)

    def shifted_s() -> float:
        return shifted_ns() / 1e9

    mock.patch.object(time, "time_ns", shifted_ns).start()
    mock.patch.object(time, "time", shifted_s).start()
    sys.argv[:2] = ["kavka"]
    from kavka.cli.entry import main as kavka

    return kavka()


if __name__ == "__main__":
    sys.exit(main())
