"""Clients' addresses."""

import socket
import struct


def plain_address(address: str) -> str:
    """An address as the client knows it: an IPv4 client of an IPv6 socket shows as ::ffff:1.2.3.4."""
    return address.removeprefix("::ffff:") if "." in address else address


def java_address(address: str) -> str:
    """A plain address as Java prints it, which ACLs and members of groups have: IPv6 in eight groups, none left out."""
    if ":" not in address:
        return address
    host, percent, scope = address.partition("%")
    groups = struct.unpack(">8H", socket.inet_pton(socket.AF_INET6, host))
    return ":".join([f"{group:x}" for group in groups]) + percent + scope
