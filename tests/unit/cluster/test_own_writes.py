"""Which trees show that a write was done that a lost connection cut off, and which do not."""

from collections.abc import Sequence

import pytest

from kavka.cluster.registry.base import Check, Create, Delete, Operation, SetData, Stat
from kavka.cluster.registry.own_writes import Found, Sent, find

SENT = Sent(since_zxid=100, session_id=7)


class Tree:
    def __init__(self, nodes: dict[str, tuple[bytes, Stat]]) -> None:
        self.nodes = nodes

    def read(self, paths: Sequence[str]) -> list[tuple[bytes, Stat] | None]:
        return [self.nodes.get(path) for path in paths]

    def children(self, parent: str) -> list[str] | None:
        prefix = parent.rstrip("/") + "/"
        return [path[len(prefix) :] for path in self.nodes if path.startswith(prefix)]

    def find(self, *operations: Operation) -> Found | None:
        return find(operations, SENT, self.read, self.children)


def node(
    data: bytes = b"", *, czxid: int = 50, mzxid: int = 50, version: int = 0, owner: int = 0
) -> tuple[bytes, Stat]:
    return data, Stat(czxid, mzxid, 0, 0, 0, version, 0, owner, len(data), 0)


def made(data: bytes = b"", *, at: int = 101, owner: int = 0) -> tuple[bytes, Stat]:
    return node(data, czxid=at, mzxid=at, owner=owner)


@pytest.mark.parametrize(
    ("operation", "found", "zxid"),
    [
        (Create("/n", b"mine"), made(b"mine"), 101),
        (Create("/n", b"mine", ephemeral=True), made(b"mine", owner=7), 101),
        (Create("/n", b"mine", ephemeral=True), made(b"changed since", owner=7), 101),
        (SetData("/n", b"mine", 3), node(b"mine", mzxid=102, version=4), 102),
        (SetData("/n", b"mine"), node(b"mine", mzxid=102, version=9), 102),
        (Delete("/n", 3), None, -1),
        (Delete("/n"), None, -1),
        (Delete("/n", 0), made(b"a successor"), -1),
    ],
)
def test_what_was_done_is_recognised(operation: Operation, found: tuple[bytes, Stat] | None, zxid: int) -> None:
    recognised = Tree({} if found is None else {"/n": found}).find(operation)
    assert recognised is not None
    assert recognised.zxid == zxid


@pytest.mark.parametrize(
    ("operation", "found"),
    [
        (Create("/n", b"mine"), None),
        (Create("/n", b"mine"), made(b"theirs")),
        (Create("/n", b"mine"), made(b"mine", at=100)),
        (Create("/n", b"mine"), made(b"mine", owner=7)),
        (Create("/n", b"mine", ephemeral=True), made(b"mine", owner=8)),
        (Create("/n", b"mine", ephemeral=True), made(b"mine", at=99, owner=7)),
        (SetData("/n", b"mine", 3), None),
        (SetData("/n", b"mine", 3), node(b"mine", mzxid=102, version=5)),
        (SetData("/n", b"mine", 3), node(b"theirs", mzxid=102, version=4)),
        (SetData("/n", b"mine", 3), node(b"mine", mzxid=100, version=4)),
        (Delete("/n", 0), node()),
        (Delete("/n"), made(b"a successor")),
        (Check("/n", 0), node()),
    ],
)
def test_what_was_not_done_or_by_another_is_not(operation: Operation, found: tuple[bytes, Stat] | None) -> None:
    assert Tree({} if found is None else {"/n": found}).find(operation) is None


def test_a_sequential_node_is_found_among_others() -> None:
    tree = Tree(
        {
            "/q/n_0000000001": made(b"mine", at=99),
            "/q/n_0000000002": made(b"theirs", at=101),
            "/q/n_0000000003": made(b"mine", at=102),
            "/q/n_note": made(b"mine", at=103),
        }
    )
    assert tree.find(Create("/q/n_", b"mine", sequential=True)) == Found(["/q/n_0000000003"], 102)
    assert tree.find(Create("/q/n_", b"other", sequential=True)) is None
    assert tree.find(Create("/empty/n_", b"mine", sequential=True)) is None


def test_a_transaction_is_recognised_whole_by_its_one_zxid() -> None:
    operations: list[Operation] = [
        Check("/guard", 1),
        Delete("/lease"),
        Create("/lease", b"me", ephemeral=True),
        SetData("/epoch", b"2", 1),
    ]
    tree = Tree(
        {"/guard": node(version=1), "/lease": made(b"me", at=105, owner=7), "/epoch": node(b"2", mzxid=105, version=2)}
    )
    found = tree.find(*operations)
    assert found == Found([None, None, "/lease", tree.nodes["/epoch"][1]], 105)

    tree.nodes["/epoch"] = node(b"2", mzxid=106, version=2)
    assert tree.find(*operations) is None
    tree.nodes["/epoch"] = node(b"1", mzxid=90, version=1)
    assert tree.find(*operations) is None


def test_one_node_tells_of_a_transaction_where_others_have_changed_the_rest_since() -> None:
    operations: list[Operation] = [
        Create("/gone", b"x"),
        SetData("/count", b"2", 1),
        SetData("/swept", b"1", 0),
        Create("/notes/note_", b"mine", sequential=True),
    ]
    later = node(b"4", mzxid=110, version=4)
    tree = Tree({"/count": later, "/notes/note_0000000007": made(b"mine", at=105)})
    found = tree.find(*operations)
    assert found is not None
    assert (found.zxid, found.results[0], found.results[3]) == (105, "/gone", "/notes/note_0000000007")
    assert found.results[1] == later[1]._replace(version=2, mzxid=105)
    assert isinstance(found.results[2], Stat)
    assert found.results[2].version == 1

    del tree.nodes["/notes/note_0000000007"]
    assert tree.find(*operations) is None
    tree.nodes["/notes/note_0000000007"] = made(b"mine", at=105)
    tree.nodes["/count"] = node(b"theirs", mzxid=110, version=2)
    assert tree.find(*operations) is None
    # What was changed last before is not what others have changed since.
    tree.nodes["/count"] = node(b"4", mzxid=104, version=4)
    assert tree.find(*operations) is None


NOTICE = "/config/changes/config_change_"


@pytest.mark.parametrize(
    ("config", "notices"),
    [
        (node(b"theirs", mzxid=101, version=4), [101]),
        (node(b"mine", mzxid=102, version=4), [101]),
        (node(b"theirs", mzxid=101, version=5), [102]),
    ],
    ids=["one other wrote", "a tool wrote the same without a notice", "nobody wrote since"],
)
def test_a_notice_under_another_zxid_than_the_change_is_anothers(
    config: tuple[bytes, Stat], notices: list[int]
) -> None:
    tree = Tree({f"{NOTICE}{at:010d}": made(b"changed", at=at) for at in notices})
    tree.nodes["/config/t"] = config
    change = SetData("/config/t", b"mine", 3)
    assert tree.find(change, Create(NOTICE, b"changed", sequential=True)) is None


def test_of_notices_that_are_alike_that_of_the_change_is_ones_own() -> None:
    tree = Tree({f"{NOTICE}{at:010d}": made(b"changed", at=at) for at in (101, 102, 103)})
    tree.nodes["/config/t"] = node(b"mine", mzxid=102, version=4)
    found = tree.find(SetData("/config/t", b"mine", 3), Create(NOTICE, b"changed", sequential=True))
    assert found is not None
    assert (found.zxid, found.results[1]) == (102, f"{NOTICE}0000000102")


def test_a_node_that_another_made_tells_that_ones_own_was_not() -> None:
    notice = Create(NOTICE, b"changed", sequential=True)
    tree = Tree({"/config/t": made(b"theirs", at=101), f"{NOTICE}0000000001": made(b"changed", at=101)})
    assert tree.find(Create("/config/t", b"mine"), notice) is None
    # The configuration `{}` of a topic is like any other's, the topic's id is not.
    both = [Create("/config/t", b"{}"), Create("/topics/t", b"my id")]
    tree = Tree({"/config/t": made(b"{}", at=101), "/topics/t": made(b"their id", at=101)})
    assert tree.find(*both) is None
    tree.nodes["/topics/t"] = made(b"their id", at=102)
    assert tree.find(*both) is None
    tree.nodes["/topics/t"] = node(b"grown since", czxid=101, mzxid=104, version=1)
    assert tree.find(*both) is not None


@pytest.mark.parametrize(
    ("guard", "is_found"),
    [
        (node(version=3, mzxid=90), True),
        (node(version=4, mzxid=103), True),
        (node(version=4, mzxid=101), False),
        (node(version=5, mzxid=103), False),
        (None, False),
    ],
    ids=["holds", "moved after", "moved before", "moved twice", "gone"],
)
def test_what_was_done_without_its_guard_was_done_by_another(guard: tuple[bytes, Stat] | None, is_found: bool) -> None:
    tree = Tree({"/config/t": made(b"{}", at=102)})
    if guard is not None:
        tree.nodes["/controller_epoch"] = guard
    assert (tree.find(Check("/controller_epoch", 3), Create("/config/t", b"{}")) is not None) is is_found
