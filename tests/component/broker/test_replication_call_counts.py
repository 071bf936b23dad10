"""How many function calls a write costs that three replicas must have: the leader's, and a follower's.

As in `test_call_counts.py`: a change for the better lowers a bound, and one that has to rise is worth a look.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from kavka.broker.network.connection import Connection
from kavka.broker.replication.followed_partitions import FetchPlan
from kavka.protocol.codec import encode
from kavka.protocol.headers import encode_request_header
from kavka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from tests.support.broker_core import BrokerCore, produce_frame
from tests.support.broker_handlers import topic_id_of
from tests.support.network_stage import SIZE, FakeSocket
from tests.support.partition_logs import batch_of
from tests.support.replicas import Replicas

VERSION = 9
FETCH_VERSION = 17
RUNS = 40
LEADER = 1
FOLLOWERS = (2, 3)

PRODUCE = 395
"""With the answers to two fetches that waited."""
FETCH = 117
COMMITTING_FETCH = 166
"""With the answer to the produce."""
FOLLOWER = 126
"""Making the fetch, and appending what it brings; without the way to the leader."""


class Calls:
    """Counts Python and C functions that are called, but while it pauses."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self, frame: object, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")

    def of(self, function: Callable[[], object]) -> int:
        before = self.count
        sys.setprofile(self.watch)
        try:
            function()
        finally:
            sys.setprofile(None)
        return self.count - before

    def apart(self, function: Callable[[], FetchResponse]) -> FetchResponse:
        """Call it without counting."""
        sys.setprofile(None)
        try:
            return function()
        finally:
            sys.setprofile(self.watch)


class Peer:
    """One connection to the leader."""

    def __init__(self, core: BrokerCore, calls: Calls) -> None:
        core.connect()
        self._core = core
        self._calls = calls
        self._connection: Connection = core.connection
        self.socket: FakeSocket = core.socket

    def send(self, frame: bytes) -> int:
        """How many calls it costs the leader to receive that and do what follows from it."""
        self.socket.input += SIZE.pack(len(frame)) + frame
        return self._calls.of(lambda: self._core.stage.thread._on_readable(self._connection))


class Follower(Peer):
    def __init__(self, core: BrokerCore, calls: Calls, replica_id: int) -> None:
        super().__init__(core, calls)
        self._replica_id = replica_id
        self._session_id = self._epoch = 0

    def fetch(self, offset: int) -> int:
        partition = FetchPartition(
            partition=0, current_leader_epoch=0, fetch_offset=offset, last_fetched_epoch=-1, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            session_id=self._session_id,
            session_epoch=self._epoch,
            replica_state=ReplicaState(replica_id=self._replica_id, replica_epoch=1),
            topics=[FetchTopic(topic_id=topic_id_of("visits"), partitions=[partition])],
            forgotten_topics_data=[],
        )
        head = encode_request_header(1, FETCH_VERSION, self._epoch, "follower")
        return self.send(head + encode(request, FETCH_VERSION))

    def got(self) -> bytes:
        """What came, which is whole."""
        taken = bytes(self.socket.taken)
        self.socket.taken.clear()
        assert len(taken) == 4 + int.from_bytes(taken[:4], "big")
        self._session_id = int.from_bytes(taken[15:19], "big")
        self._epoch += 1
        return taken


def produce(number: int) -> bytes:
    return produce_frame(VERSION, number, {("visits", 0): bytes(batch_of(b"x" * 100))}, acks=-1)


def test_what_a_write_costs_its_leader(tmp_path: Path) -> None:
    core = BrokerCore(tmp_path, inline=True)
    try:
        core.create("visits", isr=(LEADER, *FOLLOWERS))
        core.replicas.replication.lag_time_max_ms = 1 << 42
        calls = Calls()
        producer = Peer(core, calls)
        followers = [Follower(core, calls, each) for each in FOLLOWERS]
        for each in followers:
            each.fetch(0)
            core.stage.settle()
            if each.socket.taken:
                each.got()
        produces, fetches, committing = [], [], []
        for number in range(RUNS):
            produces.append(producer.send(produce(number)))
            core.stage.settle()
            assert all([b"x" * 100 in each.got() for each in followers])
            assert not producer.socket.taken
            fetches.append(followers[0].fetch(number + 1))
            assert not producer.socket.taken
            committing.append(followers[1].fetch(number + 1))
            core.stage.settle()
            assert producer.socket.taken, "committed, and answered"
            producer.socket.taken.clear()

        found = [median(counts[RUNS // 2 :]) for counts in (produces, fetches, committing)]
        assert found[0] <= PRODUCE
        assert found[1] <= FETCH
        assert found[2] <= COMMITTING_FETCH
    finally:
        core.close()


def test_what_a_fetched_batch_costs_a_follower(tmp_path: Path) -> None:
    replicas = Replicas(tmp_path, count=3)
    try:
        replicas.elect(LEADER)
        replicas.catch_up()
        calls = Calls()

        def uncounted(real: Callable[[FetchPlan], FetchResponse], plan: FetchPlan) -> FetchResponse:
            return calls.apart(lambda: real(plan))

        way = replicas.leaders[FOLLOWERS[0], LEADER]
        way.fetch = partial(uncounted, way.fetch)  # type: ignore[method-assign]  # one object's alone
        counts = []
        for _ in range(RUNS):
            replicas.produce(LEADER, b"x" * 100)
            counts.append(calls.of(lambda: replicas.step(FOLLOWERS[0])))
            replicas.step(FOLLOWERS[1])
        assert replicas.log(FOLLOWERS[0]).log_end_offset == RUNS

        assert median(counts[RUNS // 2 :]) <= FOLLOWER
    finally:
        replicas.close()
