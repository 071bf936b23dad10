"""`zookeeper.connect`: the servers, and the root below which the cluster lives."""

from __future__ import annotations

from typing import NamedTuple

from kavka.cluster.registry.base import InvalidNodeError, validate_path

DEFAULT_PORT = 2181


class ConnectString(NamedTuple):
    """`hosts` is `host:port,...` as ZooKeeper's clients take it; `chroot` is `/a/b`, or empty."""

    hosts: str
    chroot: str

    def __str__(self) -> str:
        return self.hosts + self.chroot

    @property
    def host_count(self) -> int:
        return self.hosts.count(",") + 1

    @staticmethod
    def parse(text: str) -> ConnectString:
        """Raises ValueError saying what is wrong."""
        servers, slash, root = text.strip().partition("/")
        hosts = [_with_port(each.strip()) for each in servers.split(",")]
        chroot = slash + root
        if chroot == "/":
            chroot = ""
        try:
            if chroot:
                validate_path(chroot)
        except InvalidNodeError:
            raise ValueError(f"the root path {chroot!r} must be absolute, without empty parts, . or ..") from None
        return ConnectString(",".join(hosts), chroot)


def _with_port(server: str) -> str:
    host, colon, port = server.rpartition(":")
    if not colon or server.endswith("]"):
        host, port = server, str(DEFAULT_PORT)
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        raise ValueError(f"an IPv6 address needs brackets: {server!r}")
    if not host or any(each.isspace() for each in host):
        raise ValueError(f"no host in {server!r}")
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError(f"no port in {server!r}")
    return f"{host}:{port}"
