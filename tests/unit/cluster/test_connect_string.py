"""`zookeeper.connect`, as ZooKeeper's own clients read it."""

import pytest

from kavka.cluster.registry.connect_string import ConnectString


@pytest.mark.parametrize(
    ("text", "hosts", "chroot", "host_count"),
    [
        ("localhost", "localhost:2181", "", 1),
        ("a:1,b:2", "a:1,b:2", "", 2),
        (" a:1 , b ", "a:1,b:2181", "", 2),
        ("a:1,b:2/kafka/east", "a:1,b:2", "/kafka/east", 2),
        ("a:1/", "a:1", "", 1),
        ("[::1]:2182/k", "[::1]:2182", "/k", 1),
        ("[::1]", "[::1]:2181", "", 1),
    ],
)
def test_servers_and_root_path_are_told_apart(text: str, hosts: str, chroot: str, host_count: int) -> None:
    parsed = ConnectString.parse(text)
    assert parsed == (hosts, chroot)
    assert (parsed.host_count, str(parsed)) == (host_count, hosts + chroot)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no host"),
        (":2181", "no host"),
        ("a:1,,b:2", "no host"),
        ("a b:1", "no host"),
        ("a:port", "no port"),
        ("a:0", "no port"),
        ("a:65536", "no port"),
        ("::1:2181", "brackets"),
        ("a:1/k/", "root path"),
        ("a:1/k//l", "root path"),
        ("a:1/../k", "root path"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ConnectString.parse(text)
