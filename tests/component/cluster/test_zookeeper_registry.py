"""What ZooKeeper adds to what every registry does (`test_registry.py`): connections and sessions that are lost."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kavka.cluster.registry import zookeeper_requests
from kavka.cluster.registry.base import (
    BadVersionError,
    Check,
    Create,
    Delete,
    InvalidNodeError,
    NodeExistsError,
    NoNodeError,
    NotPermittedError,
    RegistryUnavailableError,
    SessionEvent,
    SessionLostError,
    SetData,
    Stat,
    WatchEvent,
)
from kavka.cluster.registry.zookeeper_writes import Writer
from tests.support.cutting_proxy import CuttingProxy
from tests.support.processes import free_port, wait_until
from tests.support.registries import client_of, expire_session, new_root, open_zookeeper
from tests.support.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.integration, pytest.mark.java]

PATIENCE_S = 60.0


class Pair:
    """Two registries on one tree: `registry` reaches ZooKeeper through a proxy, `other` directly."""

    def __init__(self, zookeeper: ZooKeeperProcess) -> None:
        self.zookeeper = zookeeper
        self.root = new_root()
        self.proxy = CuttingProxy(zookeeper.host, zookeeper.port)
        # Nothing but the tests ends the session.
        self.registry = open_zookeeper(self.proxy.bootstrap, self.root)
        self.other = open_zookeeper(zookeeper.bootstrap, self.root)
        self.events: list[SessionEvent] = []
        self.registry.on_session_event(self.events.append)
        self._threads = ThreadPoolExecutor()

    def behind(self, call: Callable[[], object]) -> Future[object]:
        return self._threads.submit(call)

    def lose_answer(self, call: Callable[[], object], is_done: Callable[[], object]) -> object:
        """Make a call whose request arrives, while its answer is lost with the connection."""
        self.proxy.swallows_answers = True
        called = self.behind(call)
        wait_until(is_done, PATIENCE_S, "the request did not arrive")
        self.proxy.cut()
        self.proxy.mend()
        return called.result(PATIENCE_S)

    def lose_request(self, call: Callable[[], object]) -> object:
        """Make a call whose request is lost with the connection."""
        self.proxy.swallows_requests = True
        called = self.behind(call)
        # Whoever waits in the client has sent: the proxy has swallowed it, or will.
        wait_until(lambda: len(client_of(self.registry)._pending), PATIENCE_S, "nothing was sent")
        self.proxy.cut()
        self.proxy.mend()
        return called.result(PATIENCE_S)

    def disconnect(self) -> None:
        self.proxy.refuses = True
        self.proxy.cut()
        wait_until(lambda: self.registry.session_state == "CONNECTING", PATIENCE_S, "still connected")

    def close(self) -> None:
        self.proxy.mend()
        self._threads.shutdown()
        self.registry.close()
        self.other.close()
        self.proxy.close()


@pytest.fixture
def pair(zookeeper: ZooKeeperProcess) -> Iterator[Pair]:
    opened = Pair(zookeeper)
    yield opened
    opened.close()


def test_a_watch_outlives_its_connection_and_tells_what_was_missed(pair: Pair) -> None:
    registry, other = pair.registry, pair.other
    seen: dict[str, threading.Event] = {}

    def watch(name: str) -> Callable[[WatchEvent], None]:
        seen[name] = threading.Event()
        return lambda event: seen[name].set()

    for path in ("/data", "/still", "/gone", "/parent", "/barren"):
        registry.create(path)
    registry.get("/data", watch("data"))
    registry.get("/still", watch("still"))
    registry.exists("/gone", watch("gone"))
    registry.exists("/new", watch("new"))
    registry.children("/parent", watch("parent"))
    registry.children("/barren", watch("barren"))
    registry.exists("/never", watch("never"))

    pair.disconnect()
    other.multi([SetData("/data", b"1"), Delete("/gone"), Create("/new"), Create("/parent/child")])
    pair.proxy.mend()

    for name in ("data", "gone", "new", "parent"):
        assert seen[name].wait(PATIENCE_S), name
    assert not any(seen[name].is_set() for name in ("still", "barren", "never"))
    other.multi([SetData("/still", b"1"), Create("/barren/child"), Create("/never")])
    for name in ("still", "barren", "never"):
        assert seen[name].wait(PATIENCE_S), name
    assert pair.events == []


def test_a_lost_connection_is_waited_out_and_the_session_stays(pair: Pair) -> None:
    registry = pair.registry
    session_id = registry.session_id
    registry.create("/e", ephemeral=True)
    pair.disconnect()
    calls = [
        pair.behind(lambda: registry.get("/e")[0]),
        pair.behind(lambda: registry.children("/")),
        pair.behind(lambda: registry.create("/n").path),
        pair.behind(lambda: registry.pipeline([Create("/a"), Create("/b")])),
    ]
    assert not any(call.done() for call in calls)
    pair.proxy.mend()
    results = [call.result(PATIENCE_S) for call in calls]
    assert (results[0], results[2], results[3]) == (b"", "/n", ["/a", "/b"])
    assert (registry.session_id, pair.events) == (session_id, [])


@pytest.mark.parametrize("ephemeral", [False, True])
@pytest.mark.parametrize("sequential", [False, True])
def test_a_creation_that_was_cut_off_is_recognised(pair: Pair, ephemeral: bool, sequential: bool) -> None:
    made = pair.lose_answer(
        lambda: pair.registry.create("/n_", b"mine", ephemeral=ephemeral, sequential=sequential),
        lambda: pair.other.children("/"),
    )
    names = pair.other.children("/")
    assert len(names) == 1
    assert made == (f"/{names[0]}", pair.other.get(f"/{names[0]}")[1].czxid)


def test_a_conditional_write_that_was_cut_off_is_recognised(pair: Pair) -> None:
    pair.registry.create("/n", b"0")
    stat = pair.lose_answer(lambda: pair.registry.set("/n", b"1", 0), lambda: pair.other.get("/n")[1].version == 1)
    assert stat == pair.other.get("/n")[1]


def test_a_deletion_that_was_cut_off_spares_its_successor(pair: Pair) -> None:
    """Sent again, it would remove what another one has made since, for a new node's version is 0 as well."""
    pair.registry.create("/n")

    def is_done() -> bool:
        if pair.other.exists("/n") is not None:
            return False
        pair.other.create("/n", b"successor")
        return True

    assert pair.lose_answer(lambda: pair.registry.delete("/n", 0), is_done) is None
    assert pair.other.get("/n")[0] == b"successor"


def test_a_transaction_that_was_cut_off_is_recognised(pair: Pair) -> None:
    pair.registry.multi([Create("/epoch", b"1"), Create("/old"), Create("/notes")])
    results = pair.lose_answer(
        lambda: pair.registry.multi(
            [
                Check("/notes", 0),
                Delete("/old"),
                Create("/lease", b"me", ephemeral=True),
                SetData("/epoch", b"2", 0),
                Create("/notes/note_", b"changed", sequential=True),
            ]
        ),
        lambda: pair.other.exists("/lease"),
    )
    assert isinstance(results, list)
    assert results[:3] == [None, None, "/lease"]
    assert results[3] == pair.other.get("/epoch")[1]
    assert [f"/notes/{name}" for name in pair.other.children("/notes")] == results[4:]


@pytest.mark.parametrize("together", [1, 10, 100])
def test_a_pipeline_that_was_cut_off_goes_on_where_it_was(
    pair: Pair, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_requests, "MAX_TOGETHER", together)
    if together == 1:
        # As where one of them fails.
        monkeypatch.setattr(zookeeper_requests, "MAX_TOGETHER", 100)
        monkeypatch.setattr(Writer, "_together", lambda *_: None)
    pair.registry.create("/epoch")
    operations = [Create(f"/n{count:02d}", b"%d" % count) for count in range(30)]
    results = pair.lose_answer(
        lambda: pair.registry.pipeline([*operations, Check("/epoch", 0)], Check("/epoch", 0)),
        lambda: pair.other.exists("/n09"),
    )
    assert isinstance(results, list)
    assert results == [*(each.path for each in operations), None]
    assert len(pair.other.children("/")) == 31


def test_what_succeeds_together_is_one_transaction_and_what_does_not_is_done_by_itself(pair: Pair) -> None:
    registry = pair.registry
    registry.create("/epoch")
    guard = Check("/epoch", 0)
    assert registry.pipeline([Create("/a"), Create("/a/b"), SetData("/a", b"1", 0)], guard)[:2] == ["/a", "/a/b"]
    assert registry.get("/a")[1].mzxid == registry.get("/a/b")[1].czxid

    results = registry.pipeline([Create("/c"), Create("/a/b"), SetData("/a", b"2", 1), Delete("/absent")], guard)
    assert (results[0], registry.get("/a")[0]) == ("/c", b"2")
    assert [type(each) for each in results[1:]] == [NodeExistsError, Stat, NoNodeError]

    many = [Create(f"/a/n{count}", bytes(1000)) for count in range(1000)]
    assert registry.pipeline(many, guard) == [each.path for each in many]
    zxids = {node[1].czxid for node in registry.get_many([each.path for each in many]) if node is not None}
    assert len(zxids) == 10

    registry.set("/epoch", b"2")
    with pytest.raises(BadVersionError) as raised:
        registry.pipeline([Create("/d"), Create("/e")], guard)
    assert raised.value.path == "/epoch"
    assert registry.exists("/d") is None


def test_a_write_that_did_not_arrive_is_sent_again(pair: Pair) -> None:
    pair.registry.create("/n", b"0")
    assert isinstance(pair.lose_request(lambda: pair.registry.set("/n", b"1", 0)), Stat)
    assert pair.lose_request(lambda: pair.registry.delete("/n", 1)) is None
    assert pair.other.children("/") == []


def test_a_write_that_another_one_was_faster_with_is_refused_after_a_disconnect(pair: Pair) -> None:
    pair.registry.create("/n", b"0")
    pair.disconnect()
    write = pair.behind(lambda: pair.registry.set("/n", b"mine", 0))
    creation = pair.behind(lambda: pair.registry.create("/new", b"mine"))
    pair.other.multi([SetData("/n", b"theirs"), Create("/new", b"theirs")])
    pair.proxy.mend()
    with pytest.raises(BadVersionError):
        write.result(PATIENCE_S)
    with pytest.raises(NodeExistsError):
        creation.result(PATIENCE_S)


def test_a_lost_session_takes_nodes_and_watches_and_another_one_follows(pair: Pair) -> None:
    registry = pair.registry
    before = registry.session_id
    fired: list[WatchEvent] = []
    registry.create("/e", ephemeral=True)
    registry.exists("/n", fired.append)

    expire_session(registry, pair.zookeeper.bootstrap)

    wait_until(lambda: len(pair.events) == 2, PATIENCE_S, lambda: f"{pair.events}")
    assert pair.events == [SessionEvent.EXPIRED, SessionEvent.ESTABLISHED]
    assert registry.session_id not in (0, before)
    assert registry.is_own_session(before)
    assert registry.is_own_session(registry.session_id)
    assert not pair.other.is_own_session(before)
    assert registry.children("/") == []
    registry.create("/n", ephemeral=True)
    assert fired == []
    assert registry.session_counts.expiries == 1


def test_a_write_on_its_way_when_the_session_ends_is_not_repeated_in_the_next_one(pair: Pair) -> None:
    registry = pair.registry
    pair.proxy.swallows_requests = True
    write = pair.behind(lambda: registry.create("/n"))
    wait_until(lambda: len(client_of(registry)._pending), PATIENCE_S, "nothing was sent")
    expire_session(registry, pair.zookeeper.bootstrap)
    pair.proxy.cut()
    pair.proxy.mend()
    with pytest.raises(SessionLostError):
        write.result(PATIENCE_S)
    assert registry.children("/") == []


def test_who_stops_waits_for_no_connection(pair: Pair) -> None:
    pair.disconnect()
    call = pair.behind(lambda: pair.registry.get("/"))
    pair.registry.stop_waiting()
    with pytest.raises(RegistryUnavailableError, match="no connection to ZooKeeper at 127"):
        call.result(PATIENCE_S)
    pair.registry.close()
    with pytest.raises(RegistryUnavailableError, match="closed"):
        pair.registry.get("/")


def test_a_client_that_gave_up_is_followed_by_another(pair: Pair) -> None:
    registry = pair.registry
    before = registry.session_id
    registry.create("/e", ephemeral=True)
    client = client_of(registry)
    # An answer to nothing: kazoo's thread ends with an exception, and all by itself never comes back.
    client._connection._read_socket = None
    pair.behind(lambda: registry.get("/"))
    wait_until(lambda: len(pair.events) == 2, PATIENCE_S, lambda: f"{pair.events}")
    assert registry.is_own_session(before)
    assert registry.session_id not in (0, before)
    assert registry.get("/")[1].num_children >= 0


def test_what_zookeeper_would_not_read_is_refused_to_its_asker(pair: Pair) -> None:
    """ZooKeeper closes the connection of who sends more than 1 MiB, and would do so again."""
    registry = pair.registry
    registry.create("/n")
    with pytest.raises(InvalidNodeError, match="/n"):
        registry.set("/n", bytes(1 << 20))
    with pytest.raises(InvalidNodeError, match="/b"):
        registry.multi([Create("/a", bytes(1 << 19)), Create("/b", bytes(1 + (1 << 19)))])
    results = registry.pipeline([Create("/big", bytes(1 << 20)), Create("/a", bytes((1 << 20) - 1000))])
    assert isinstance(results[0], InvalidNodeError)
    assert results[1] == "/a"
    assert registry.session_counts.disconnects == 0


def test_a_server_out_of_reach_ends_the_start_in_time() -> None:
    with pytest.raises(RegistryUnavailableError, match=r"did not answer in 0\.5 s"):
        open_zookeeper(f"127.0.0.1:{free_port()}", "", connection_timeout_ms=500)


def test_the_root_path_is_made_and_stays_apart(zookeeper: ZooKeeperProcess) -> None:
    root = new_root()
    registry = open_zookeeper(zookeeper.bootstrap, f"{root}/a/b")
    above = open_zookeeper(zookeeper.bootstrap, root)
    fired: list[WatchEvent] = []
    registry.exists("/n", fired.append)
    above.create("/a/b/n")
    wait_until(lambda: fired, PATIENCE_S, "the watch did not fire")
    assert fired[0].path == "/n"
    assert registry.children("/") == ["n"]
    with pytest.raises(NoNodeError):
        registry.get("/a")
    registry.close()
    above.close()


def test_with_set_acl_only_its_login_may_write_and_none_but_it_read_secrets(zookeeper: ZooKeeperProcess) -> None:
    root = new_root()
    mine = open_zookeeper(zookeeper.bootstrap, root, login="kavka:secret", set_acl=True)
    mine.multi(
        [Create("/config"), Create("/config/users"), Create("/config/users/alice", b"scram"), Create("/consumers")]
    )
    mine.create("/topics", b"public")

    for login in (None, "kavka:wrong"):
        other = open_zookeeper(zookeeper.bootstrap, root, login=login)
        assert other.get("/topics")[0] == b"public"
        with pytest.raises(NotPermittedError, match="login"):
            other.set("/topics", b"")
        with pytest.raises(NotPermittedError, match="/config/users/alice"):
            other.get("/config/users/alice")
        with pytest.raises(NotPermittedError):
            open_zookeeper(zookeeper.bootstrap, f"{root}/topics/below", login=login)
        other.close()
    other = open_zookeeper(zookeeper.bootstrap, root)
    other.create("/consumers/group")
    other.close()
    mine.close()
    again = open_zookeeper(zookeeper.bootstrap, root, login="kavka:secret", set_acl=True)
    assert again.get("/config/users/alice")[0] == b"scram"
    again.close()


def test_so_many_requests_may_be_unanswered_and_no_more(pair: Pair) -> None:
    client = client_of(pair.registry)
    pair.proxy.swallows_answers = True
    calls = [pair.behind(lambda: pair.registry.get_many(["/"] * 25)) for _ in range(3)]
    wait_until(lambda: len(client._pending) == 10, PATIENCE_S, lambda: f"{len(client._pending)} are unanswered")
    assert len(client._pending) + len(client._queue) == 10
    pair.proxy.cut()
    pair.proxy.mend()
    for call in calls:
        found = call.result(PATIENCE_S)
        assert isinstance(found, list)
        assert len(found) == 25
