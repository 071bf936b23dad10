"""A writer's schema as a program for the kernel: a table of instructions, and the streams they write to."""

from enum import IntEnum
from typing import Final

import numpy as np

from kavka.pipeline.schemas.avro.tree import Node

Integers = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"


class Op(IntEnum):
    """What an instruction reads. A stream gets one number each time."""

    END = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    BITS = 4
    """As many bytes as the argument says, up to 8, the lowest first: a float or double."""
    BYTES = 5
    """To two streams: where it begins, and how long it is."""
    FIXED = 6
    """To one: where it begins. The argument is its size."""
    CHOICE = 7
    """A number below the argument: an enum's symbol."""
    UNION = 8
    """As CHOICE; goes on at the place in the table of jumps, from the target on."""
    JUMP = 9
    REPEAT = 10
    """Begins an array or map: its items' number goes to the stream at the end. Argument: its first instruction."""
    NEXT = 11
    """Ends an item. Target, as REPEAT's: what comes after the last one."""


_SIMPLE: Final = {"boolean": Op.BOOLEAN, "int": Op.INT, "long": Op.LONG, "bytes": Op.BYTES, "string": Op.BYTES}


class Program:
    """Instructions in rows of (op, stream, argument, target). Immutable once made."""

    def __init__(self, root: Node) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._jumps: list[int] = []
        self._paths: list[str] = []
        self.streams: Final[dict[int, int]] = {}
        """A node's first stream, by the node's identity."""
        self._nodes: Final = [root]
        self.stream_count = 0
        self._compile(root)
        self._add(Op.END, root)
        self.rows: Final = np.array(self._rows, np.int64)
        self.jumps: Final = np.array([*self._jumps, 0], np.int64)

    def path(self, instruction: int) -> str:
        """Where in the schema an instruction stands."""
        return self._paths[instruction]

    def _compile(self, node: Node) -> None:
        kind = node.kind
        if kind == "record":
            for field in node.fields:
                self._compile(field.node)
        elif kind in _SIMPLE:
            self._add(_SIMPLE[kind], node, streams=2 if kind in ("bytes", "string") else 1)
        elif kind in ("float", "double"):
            self._add(Op.BITS, node, 4 if kind == "float" else 8, streams=1)
        elif kind == "fixed":
            self._add(Op.FIXED, node, node.size_bytes, streams=1)
        elif kind == "enum":
            self._add(Op.CHOICE, node, len(node.symbols), streams=1)
        elif kind == "union":
            self._compile_union(node)
        elif kind in ("array", "map"):
            self._compile_items(node)

    def _compile_union(self, node: Node) -> None:
        table = len(self._jumps)
        self._add(Op.UNION, node, len(node.branches), table, streams=1)
        self._jumps += [0] * len(node.branches)
        ends = []
        for place, branch in enumerate(node.branches):
            self._jumps[table + place] = len(self._rows)
            self._compile(branch)
            ends.append(len(self._rows))
            self._add(Op.JUMP, node)
        for end in ends:
            self._rows[end] = (Op.JUMP, 0, 0, len(self._rows))

    def _compile_items(self, node: Node) -> None:
        begin = len(self._rows)
        self._add(Op.REPEAT, node, begin + 1, streams=1 if node.kind == "array" else 3)
        if node.kind == "map":
            self._rows.append((Op.BYTES, self.streams[id(node)] + 1, 0, 0))
            self._paths.append(f"{node.path}[]")
        self._compile(node.item)
        self._add(Op.NEXT, node, begin + 1, len(self._rows) + 1, stream=self.streams[id(node)])
        op, stream, argument, _ = self._rows[begin]
        self._rows[begin] = (op, stream, argument, len(self._rows))

    def _add(
        self, op: Op, node: Node, argument: int = 0, target: int = 0, *, streams: int = 0, stream: int = 0
    ) -> None:
        if streams:
            stream = self.streams[id(node)] = self.stream_count
            self.stream_count += streams
        self._rows.append((op, stream, argument, target))
        self._paths.append(node.path)
