"""What a process and all that it has started cost: Spark's driver, its JVM and its Python workers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
KIB: Final = 1024


def cpu_s(*pids: int) -> float:
    """User and system time of these processes, of what they started, and of what of that has ended."""
    return sum(sum(int(each) for each in fields[11:15]) for _, _, fields in _tree(pids)) / _TICKS_PER_S


def memory_bytes(pid: int) -> tuple[int, int]:
    """Resident memory of the tree's JVMs, and of its other processes; of a page that several share, each has its part.

    Not what each has resident: a worker that has just been forked has all of its parent's pages, and uses few.
    """
    java = others = 0
    for each, name, _ in _tree((pid,)):
        size_bytes = _share_bytes(each)
        if name == "java":
            java += size_bytes
        else:
            others += size_bytes
    return java, others


def _share_bytes(pid: int) -> int:
    """The process's proportional set size; 0 where it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * KIB for line in lines if line.startswith("Pss:")), 0)


def _tree(pids: tuple[int, ...]) -> Iterator[tuple[int, str, list[str]]]:
    """The pid and the name of each process, and the fields of its `stat` from the third on, the state."""
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
    return ((pid, *found[pid]) for pid in chosen if pid in found)
