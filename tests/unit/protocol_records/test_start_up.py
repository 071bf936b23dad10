"""What importing the records costs: nobody pays for a codec before using it."""

import subprocess
import sys

NOT_NEEDED_YET = {
    "lz4",
    "lz4.frame",
    "snappy",
    "cramjam",
    "zstandard",
    "crcmod",
    "numpy",
    "argparse",
    "importlib.metadata",
}


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    program = """
import sys
from kavka.protocol.records.batch import Record, build_batch, read_header, verify_crc
from kavka.protocol.records.legacy import to_legacy
batch = build_batch([Record(value=b"x")])
verify_crc(batch, 0, read_header(batch))
to_legacy(batch, 1)
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & NOT_NEEDED_YET == set()


def test_the_way_of_a_produced_batch_stays_short() -> None:
    """Function calls, which noise can't move: header, CRC and patch of one batch."""
    from kavka.protocol.records.batch import Record, build_batch, patch_offsets, read_header, verify_crc

    buffer = memoryview(bytearray(build_batch([Record(value=b"x")])))
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    header = read_header(buffer)
    verify_crc(buffer, 0, header)
    patch_offsets(buffer, 0, 7, 3)
    sys.setprofile(None)

    assert calls <= 10
