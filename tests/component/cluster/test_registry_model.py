"""A registry does what a dictionary of nodes would do, in any order of operations, over restarts."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Registry,
    RegistryError,
    SetData,
)
from kavka.cluster.registry.embedded import EmbeddedRegistry
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from tests.support.registries import new_root, open_zookeeper
from tests.support.zookeeper_process import ZooKeeperProcess

PATHS = ["/a", "/b", "/a/x", "/a/y", "/a/x/deep", "/b/x"]
paths = st.sampled_from(PATHS)
versions = st.integers(-1, 2)
data = st.binary(max_size=4)
operations = st.one_of(
    st.builds(Create, paths, data, st.booleans(), st.booleans()),
    st.builds(SetData, paths, data, versions),
    st.builds(Delete, paths, versions),
)


class Node:
    def __init__(self, data: bytes, is_ephemeral: bool) -> None:
        self.data = data
        self.is_ephemeral = is_ephemeral
        self.version = 0
        self.children_created = 0


class Model:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", False)}

    def copy(self) -> "Model":
        other = Model()
        for path, node in self.nodes.items():
            copied = Node(node.data, node.is_ephemeral)
            copied.version, copied.children_created = node.version, node.children_created
            other.nodes[path] = copied
        return other

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            each[len(prefix) :]
            for each in self.nodes
            if each != "/" and each.startswith(prefix) and "/" not in each[len(prefix) :]
        )

    def apply(self, operation: Operation) -> type[RegistryError] | None:
        path = operation.path
        if isinstance(operation, Create):
            parent = path.rpartition("/")[0] or "/"
            if parent not in self.nodes:
                return NoNodeError
            if self.nodes[parent].is_ephemeral:
                return NoChildrenForEphemeralsError
            if operation.sequential:
                path += f"{self.nodes[parent].children_created:010d}"
            if path in self.nodes:
                return NodeExistsError
            self.nodes[parent].children_created += 1
            self.nodes[path] = Node(operation.data, operation.ephemeral)
            return None
        node = self.nodes.get(path)
        if node is None:
            return NoNodeError
        if operation.version not in (-1, node.version):
            return BadVersionError
        if isinstance(operation, SetData):
            node.data = operation.data
            node.version += 1
        elif self.children(path):
            return NotEmptyError
        else:
            del self.nodes[path]
        return None

    def end_session(self) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if not node.is_ephemeral}


class RegistryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "registry.sqlite"
        self.root = new_root()
        self.registry = self.open()
        self.model = Model()
        self.model.nodes["/"].children_created = self.registry.get("/")[1].cversion

    def open(self) -> Registry:
        return EmbeddedRegistry(self.path, lambda: 0)

    @rule(operation=operations)
    def one(self, operation: Operation) -> None:
        self.check_raised(self.model.apply(operation), [operation])

    @rule(several=st.lists(operations, min_size=1, max_size=4))
    def all_or_none(self, several: list[Operation]) -> None:
        attempt = self.model.copy()
        expected = next((error for each in several if (error := attempt.apply(each)) is not None), None)
        if expected is None:
            self.model = attempt
        self.check_raised(expected, several)

    @rule(several=st.lists(operations, max_size=4))
    def each_by_itself(self, several: list[Operation]) -> None:
        expected = [self.model.apply(operation) for operation in several]
        results = self.registry.pipeline(several)
        assert [type(each) if isinstance(each, RegistryError) else None for each in results] == expected

    @rule()
    def restart(self) -> None:
        self.registry.close()
        self.registry = self.open()
        self.model.end_session()

    @invariant()
    def same_tree(self) -> None:
        names = sorted(self.model.nodes)
        found = self.registry.get_many(names)
        for path, node in zip(names, found, strict=True):
            expected = self.model.nodes[path]
            assert node is not None, path
            children = self.model.children(path)
            assert (node[0], node[1].version) == (expected.data, expected.version)
            assert node[1].num_children == len(children)
            assert node[1].cversion == 2 * expected.children_created - len(children)
            assert self.registry.children(path) == children

    def check_raised(self, expected: type[RegistryError] | None, several: list[Operation]) -> None:
        raised = None
        try:
            self.registry.multi(several)
        except RegistryError as error:
            raised = type(error)
        assert raised is expected

    def teardown(self) -> None:
        self.registry.close()
        self.folder.cleanup()


TestRegistryModel = RegistryMachine.TestCase
TestRegistryModel.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


class MemoryMachine(RegistryMachine):
    def __init__(self) -> None:
        self.ensemble = MemoryEnsemble(lambda: 0)
        super().__init__()

    def open(self) -> Registry:
        return MemoryRegistry(self.ensemble)


TestMemoryModel = MemoryMachine.TestCase
TestMemoryModel.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


class ZooKeeperMachine(RegistryMachine):
    bootstrap = ""

    def open(self) -> Registry:
        return open_zookeeper(self.bootstrap, self.root)


@pytest.mark.integration
@pytest.mark.java
class TestZooKeeperModel(ZooKeeperMachine.TestCase):  # type: ignore[misc,valid-type]  # a class made at run time
    settings = settings(max_examples=4, stateful_step_count=15, deadline=None)

    @pytest.fixture(autouse=True)
    def _server(self, zookeeper: ZooKeeperProcess) -> None:
        ZooKeeperMachine.bootstrap = zookeeper.bootstrap
