"""Small file systems of a test's own, which it can fill or break. Needs root; skips with a reason without."""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

EXT4_SHUTDOWN = 2 << 30 | 4 << 16 | ord("X") << 8 | 125
WITHOUT_FLUSH = 2


@contextmanager
def tmpfs(path: Path, size_mib: int) -> Iterator[Path]:
    """An empty file system in memory at `path`."""
    path.mkdir(parents=True)
    with _mounted(["-t", "tmpfs", "-o", f"size={size_mib}m", "kavka-test"], path):
        yield path


@contextmanager
def ext4(path: Path, size_mib: int) -> Iterator[Path]:
    """An empty ext4 at `path`, in a file beside it: for `break_disk`."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("mkfs.ext4 is not installed (Debian: apt-get install e2fsprogs)")
    path.mkdir(parents=True)
    image = path.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(size_mib * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True, capture_output=True)
    with _mounted(["-o", "loop", str(image)], path):
        yield path


def remount(path: Path, mode: str) -> None:
    """Make the file system read-only ("ro") or writable ("rw"); nothing may be open for writing."""
    subprocess.run(["mount", "-o", f"remount,{mode}", str(path)], check=True, capture_output=True)


def break_disk(path: Path) -> None:
    """From now on everything that needs the disk of this ext4 fails with EIO."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, EXT4_SHUTDOWN, struct.pack("I", WITHOUT_FLUSH))
    finally:
        os.close(descriptor)


@contextmanager
def _mounted(arguments: list[str], path: Path) -> Iterator[None]:
    done = subprocess.run(["mount", *arguments, str(path)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)
