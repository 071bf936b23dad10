"""Clients' addresses."""


def plain_address(address: str) -> str:
    """An address as the client knows it: an IPv4 client of an IPv6 socket shows as ::ffff:1.2.3.4."""
    return address.removeprefix("::ffff:") if "." in address else address
