"""What goes to ZooKeeper in one request, and what is too much for one."""

import pytest

from kavka.cluster.registry.base import Check, Create, Delete, InvalidNodeError, Operation, SetData
from kavka.cluster.registry.zookeeper_requests import MAX_REQUEST_SIZE_BYTES, Requests, batches, refusal

MIB = 1 << 20


def test_paths_lie_below_the_root_and_come_back_without_it() -> None:
    below = Requests("/kafka/east", set_acl=False)
    assert (below.path("/"), below.path("/a")) == ("/kafka/east", "/kafka/east/a")
    assert (below.below_root("/kafka/east"), below.below_root("/kafka/east/a")) == ("/", "/a")
    bare = Requests("", set_acl=False)
    assert (bare.path("/"), bare.path("/a"), bare.below_root("/"), bare.below_root("/a")) == ("/", "/a", "/", "/a")


@pytest.mark.parametrize(
    ("path", "schemes"),
    [
        ("/brokers", ["auth", "world"]),
        ("/config/users", ["auth"]),
        ("/config/users/alice", ["auth"]),
        ("/delegation_token/tokens/1", ["auth"]),
        ("/consumers", ["world"]),
    ],
)
def test_protected_nodes_are_the_logins_and_secrets_its_alone(path: str, schemes: list[str]) -> None:
    assert sorted(acl.id.scheme for acl in Requests("", set_acl=True).acls(path)) == schemes
    assert [acl.id.scheme for acl in Requests("", set_acl=False).acls(path)] == ["world"]


@pytest.mark.parametrize("make", [Create, SetData])
def test_a_request_that_zookeeper_would_not_read_is_refused(make: type[Create | SetData]) -> None:
    assert refusal([make("/n", bytes(MAX_REQUEST_SIZE_BYTES - 400))]) is None
    assert isinstance(refusal([make("/n", bytes(MAX_REQUEST_SIZE_BYTES))]), InvalidNodeError)
    halves = [make("/small", bytes(1000)), make("/large", bytes(MIB // 2)), make("/other", bytes(MIB // 2 - 500))]
    refused = refusal([*halves, Delete("/gone")])
    assert refused is not None
    assert refused.path == "/large"
    assert isinstance(refusal([Delete("relative")]), InvalidNodeError)


def test_batches_are_few_and_small_and_end_where_the_guard_moves() -> None:
    many: list[Operation] = [Create(f"/n{count}") for count in range(250)]
    assert [len(batch) for batch in batches(range(250), many, None)] == [100, 100, 50]
    assert list(batches([0, 2, 3], many, None)) == [[0, 2, 3]]
    large: list[Operation] = [Create(f"/n{count}", bytes(100_000)) for count in range(5)]
    assert [len(batch) for batch in batches(range(5), large, None)] == [2, 2, 1]
    guard = Check("/epoch", 0)
    moving: list[Operation] = [Create("/a"), SetData("/epoch", b"2"), Create("/b"), Create("/c")]
    assert list(batches(range(4), moving, guard)) == [[0, 1], [2, 3]]
    assert list(batches([], moving, guard)) == []
