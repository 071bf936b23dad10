"""A broker as a client knows it."""

from typing import NamedTuple, TypeAlias

NodeKey: TypeAlias = tuple[int, str]


class Node(NamedTuple):
    """Where a broker is reached, and which of the connections to it is meant.

    Nodes that differ in `lane` only are the same broker over different connections: what waits long for its answer on
    one lane holds up nothing on another. A bootstrap address, whose broker is not known yet, has a negative id.

        for node in admin.describe_cluster().nodes:
            print(node.id, node.host, node.port, node.rack)
    """

    id: int
    host: str
    port: int
    rack: str | None = None
    lane: str = ""

    @property
    def key(self) -> NodeKey:
        """What names the connection."""
        return self.id, self.lane

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        lane = f" ({self.lane})" if self.lane else ""
        return f"{self.id} at {host}:{self.port}{lane}"
