"""What a process and all that it has started cost: Spark's driver, its JVM and its Python workers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def cpu_s(*pids: int) -> float:
    """User and system time of these processes, of what they started, and of what of that has ended."""
    return sum(sum(int(each) for each in fields[11:15]) for _, fields in _tree(pids)) / _TICKS_PER_S


def rss_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of the tree's JVMs, and of its other processes: pages that several share count for each."""
    java = others = 0
    for name, fields in _tree((pid,)):
        size_bytes = int(fields[21]) * _PAGE_BYTES
        if name == "java":
            java += size_bytes
        else:
            others += size_bytes
    return java, others


def _tree(pids: tuple[int, ...]) -> Iterator[tuple[str, list[str]]]:
    """The name of each process and the fields of its `stat` from the third on, the state."""
    found: dict[int, tuple[str, list[str]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                # The name may hold spaces and parentheses.
                head, _, rest = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue  # it has just ended
            found[int(folder.name)] = head.partition("(")[2], rest.split()
    chosen = set(pids)
    while more := {pid for pid, (_, fields) in found.items() if int(fields[1]) in chosen} - chosen:
        chosen |= more
    return (found[pid] for pid in chosen if pid in found)
