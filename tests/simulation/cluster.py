"""A cluster of simulated brokers, what is on its way between them, and all that can happen to it.

Every action takes a number, which decides all that is open about it; where nothing can be done it does nothing. So any
list of (action, number) is a schedule, and a part of one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from kavka.broker.partitions.partition import Partition
from kavka.broker.replication.followed_partitions import FetchPlan
from kavka.broker.waiting.delayed_produce import Awaited
from kavka.cluster.broker_registration import BrokerIdInUseError, prepare_tree
from kavka.cluster.controller.requests import ElectionType
from kavka.cluster.ports import ControlRequest
from kavka.cluster.registry.base import Create
from kavka.cluster.znodes.broker import BrokerInfo
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import AlterPartitionResponse
from kavka.protocol.messages.fetch import FetchResponse
from kavka.protocol.messages.produce import PartitionProduceResponse
from tests.simulation.broker import KEY, LAG_MS, TOPIC, TOPIC_ID, Errand, Settings, SimulatedBroker, SteppedFetcher
from tests.simulation.model_log import Config, Disk, Entry
from tests.simulation.model_registry import Client, Tree


class Shape(NamedTuple):
    """What a cluster is like."""

    brokers: int = 3
    replicas: tuple[int, ...] = (1, 2, 3)
    min_insync_replicas: int = 2
    unclean: bool = False
    first_isr: tuple[int, ...] = ()
    """In the tree before anybody starts; empty: the partition is new."""


class Flight:
    """A follower's fetch on its way, there or back."""

    def __init__(self, asker: SimulatedBroker, fetcher: SteppedFetcher, plan: FetchPlan) -> None:
        self.asker = asker
        self.fetcher = fetcher
        self.plan = plan
        self.broker_epoch = asker.latest_epoch()
        self.answer: FetchResponse | None = None


class Sent(NamedTuple):
    """What a producer waits for."""

    broker: SimulatedBroker
    awaited: Awaited
    offset: int
    entry: Entry


class Cluster:
    """Brokers by id, alive or not."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.config = Config(shape.min_insync_replicas)
        self.settings = Settings(unclean=shape.unclean)
        self.now = 1_000
        self.tree = _prepared_tree(shape).copy()
        self.disks = {broker_id: Disk() for broker_id in range(1, shape.brokers + 1)}
        self.brokers: dict[int, SimulatedBroker] = {}
        self.flights: list[Flight] = []
        self.ghosts: list[Callable[[], object]] = []
        """Requests of connections that were given up: they may still arrive, and nobody hears the answer."""
        self.answers: list[tuple[Errand, Any]] = []
        self.sent: list[Sent] = []
        self.cuts: set[tuple[int, int]] = set()
        self.handed_over: set[int] = set()
        """Brokers that have said that they are about to stop."""
        self.next_value = 1
        self.interrupt_in = 0
        """After so many calls of the registry somebody else is faster; 0: nobody."""
        self.interrupt: Callable[[int], object] = lambda broker_id: None
        self.on_loss: Callable[[int, bool], None] = lambda broker_id, is_power_cut: None
        self.on_away: Callable[[int], object] = lambda broker_id: None
        for broker_id in self.disks:
            self.boot(broker_id)

    @property
    def alive(self) -> list[SimulatedBroker]:
        return [broker for broker in self.brokers.values() if broker.is_alive]

    def partitions(self) -> list[tuple[SimulatedBroker, Partition]]:
        """All replicas that are hosted now, but for those in directories that are away."""
        found = [(broker, broker.partition) for broker in self.alive]
        return [(broker, each) for broker, each in found if each is not None and each.log is not None]

    def state(self) -> PartitionState | None:
        """As the tree has it."""
        path = PartitionState.path(*KEY)
        node = self.tree.nodes.get(path)
        return None if node is None else PartitionState.decode(*KEY, node.data, node.version)

    def replicas(self) -> tuple[int, ...]:
        return TopicAssignment.decode(TOPIC, self.tree.nodes[TopicAssignment.path(TOPIC)].data).replicas[0]

    def reach(self, source: int, target: int) -> SimulatedBroker | None:
        """The other broker, if it lives, and no cut lies on the way there or back."""
        broker = self.brokers.get(target)
        if broker is None or not broker.is_alive or (source, target) in self.cuts or (target, source) in self.cuts:
            return None
        return broker

    def boot(self, broker_id: int, *, without_directory: bool = False) -> None:
        """Start a broker, with all of its directories or without that in which its log lies.

        While its id is still registered, it waits for the end of that session.
        """
        disk = self.disks[broker_id]
        if without_directory:
            disk.go_away()
            self.on_away(broker_id)
        else:
            disk.come_back()
        node = self.tree.nodes.get(BrokerInfo.path(broker_id))
        if node is not None:
            self.tree.end_session(node.owner)
        client = Client(self.tree, partial(self._before_call, broker_id))
        broker = SimulatedBroker(
            broker_id, self.disks[broker_id], client, self.config, self.settings, lambda: self.now, self.reach
        )
        try:
            broker.start()
        except BrokerIdInUseError:
            client.close()
            return
        self.brokers[broker_id] = broker

    def kill(self, broker: SimulatedBroker, *, is_power_cut: bool = False, loses_disk: bool = False) -> None:
        """The process ends. Its session goes on for a while, and what it has sent may still arrive."""
        broker.is_alive = False
        self.handed_over.discard(broker.broker_id)
        broker.registry.close()
        self.flights = [flight for flight in self.flights if flight.asker is not broker]
        self.sent = [sent for sent in self.sent if sent.broker is not broker]
        if is_power_cut or loses_disk:
            self.on_loss(broker.broker_id, is_power_cut)
        if loses_disk:
            self.disks[broker.broker_id] = Disk(is_new=True)
        else:
            self.disks[broker.broker_id].crash(is_power_cut=is_power_cut)

    def lose_directory(self, broker: SimulatedBroker) -> None:
        """The disk with a broker's log fails; it goes on, and finds it again when it is started the next time."""
        self.sent = [sent for sent in self.sent if sent.broker is not broker]
        broker.lose_directory()
        self.on_away(broker.broker_id)

    # Messages

    def deliver_order(self, broker: SimulatedBroker, target: int, fate: int) -> None:
        """What the controller has to say first to a broker arrives; or does not, or its answer does not."""
        way = broker.channels.ways.get(target)
        order = None if way is None else way.queue.take()
        if way is None or order is None:
            return
        answer = None
        number = next(broker.channels.numbers)
        reached = self.reach(broker.broker_id, target)
        if fate == 2:
            self.ghosts.append(lambda: self._obey(target, order.request, number))
        elif reached is not None and fate != 1:
            answer = self._obey(target, order.request, number)
        if answer is None or fate == 3:
            way.queue.give_back()
            return
        way.queue.done()
        order.answer(answer)

    def _obey(self, target: int, request: ControlRequest, number: int) -> Any:
        broker = self.brokers[target]
        return broker.obey(request, number) if broker.is_alive else None

    def begin_fetch(self, broker: SimulatedBroker, fetcher: SteppedFetcher) -> Flight | None:
        """The next round of a fetcher, unless one is under way."""
        if any(flight.fetcher is fetcher for flight in self.flights):
            return None
        plan = fetcher.begin()
        if plan is None:
            return None
        flight = Flight(broker, fetcher, plan)
        self.flights.append(flight)
        return flight

    def serve_fetch(self, flight: Flight, fate: int) -> None:
        """It arrives at the leader, who may find no room for it in the answer; or its connection is given up before."""
        asker, source = flight.asker.broker_id, flight.fetcher.source
        leader = self.reach(asker, source)
        if fate == 2:
            self.ghosts.append(lambda: self._serve_ghost(flight))
        if leader is None or fate in (1, 2):
            self.lose_fetch(flight)
            return
        flight.answer = leader.serve(asker, flight.broker_epoch, flight.plan, is_full=fate == 4)

    def _serve_ghost(self, flight: Flight) -> None:
        leader = self.brokers[flight.fetcher.source]
        if leader.is_alive:
            leader.serve(flight.asker.broker_id, flight.broker_epoch, flight.plan)

    def finish_fetch(self, flight: Flight) -> None:
        """The answer arrives."""
        assert flight.answer is not None
        self.flights.remove(flight)
        flight.fetcher.finish(flight.plan, flight.answer)

    def lose_fetch(self, flight: Flight) -> None:
        """Nothing more is heard of it."""
        self.flights.remove(flight)
        flight.fetcher.lost()

    def deliver_errand(self, errand: Errand) -> None:
        """What a broker asks arrives at whom it takes for the controller; it may arrive again."""
        asker = errand.asker
        target = self.reach(asker.broker_id, asker.metadata.controller_id)
        if target is None:
            return
        promise = target.controller.of.alter_partition(errand.request)

        def answered(answer: AlterPartitionResponse | None, error: BaseException | None) -> None:
            if target.is_alive:
                code = error.code if isinstance(error, BrokerError) else ErrorCode.UNKNOWN_SERVER_ERROR
                self.answers.append((errand, answer or AlterPartitionResponse(error_code=code, topics=[])))

        promise.watch(answered)

    def deliver_answer(self, index: int) -> None:
        """What the controller said arrives, unless it was heard already."""
        errand, answer = self.answers.pop(index)
        broker = errand.asker
        if broker.errand is errand and broker.is_alive and answer.error_code != ErrorCode.NOT_CONTROLLER:
            broker.errand = None
            errand.on_answer(answer)

    def produce(self, broker: SimulatedBroker, acks: int) -> None:
        """A client sends a record."""
        partition = broker.partition
        if partition is None:
            return
        value = self.next_value
        self.next_value += 1
        leader_epoch = partition.role.leader_epoch
        record: Any = value
        try:
            result = partition.append(record, acks, 9, 0)
        except BrokerError:
            return
        if acks == -1:
            answer = PartitionProduceResponse(
                index=0, error_code=0, base_offset=result.first_offset, log_append_time_ms=-1, log_start_offset=0
            )
            awaited = Awaited(partition, leader_epoch, result.last_offset + 1, answer)
            self.sent.append(Sent(broker, awaited, result.first_offset, (leader_epoch, value)))
        partition.appended()

    # What operators ask for

    def reassign(self, broker: SimulatedBroker, replicas: tuple[int, ...]) -> None:
        broker.controller.of.alter_reassignments({KEY: replicas})

    def prefer(self, broker: SimulatedBroker) -> None:
        broker.controller.of.elect_leaders(ElectionType.PREFERRED, None)

    def hand_over(self, controller: SimulatedBroker, broker: SimulatedBroker) -> None:
        if broker.own_epoch() == -1:
            # `ElectedController` refuses that: it could count for the broker's next start.
            return
        self.handed_over.add(broker.broker_id)
        controller.controller.of.controlled_shutdown(broker.broker_id, broker.own_epoch())

    # Time

    def tick(self) -> None:
        """So long that who lags leaves the ISR."""
        self.now += LAG_MS
        for broker in self.alive:
            broker.replicas.shrink_isrs()

    def _before_call(self, broker_id: int) -> None:
        if self.interrupt_in:
            self.interrupt_in -= 1
            if not self.interrupt_in:
                self.interrupt(broker_id)


@cache
def _prepared_tree(shape: Shape) -> Tree:
    """With its trunk and the topic, which nobody leads yet."""
    tree = Tree()
    client = Client(tree)
    prepare_tree(client)
    client.create(TopicAssignment.path(TOPIC), TopicAssignment({0: shape.replicas}, TOPIC_ID).encode())
    if shape.first_isr:
        parents = TopicAssignment.partitions_path(TOPIC), f"{TopicAssignment.partitions_path(TOPIC)}/0"
        state = PartitionState(shape.first_isr[0], 0, shape.first_isr, 0)
        client.pipeline([*map(Create, parents), Create(PartitionState.path(*KEY), state.encode())])
    client.close()
    return tree
