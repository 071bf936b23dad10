"""Whatever happens to brokers and topics in whatever order, tree, controller and brokers agree in the end."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from kavka.cluster.controller.requests import ElectionType, NewPartitions, NewTopic
from kavka.cluster.registry.embedded import FILE_NAME
from kavka.cluster.znodes.topic import PartitionState, TopicAssignment
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
)
from tests.support.controller_stage import Stage, wait

BROKERS = [1, 2, 3]
brokers = st.sampled_from(BROKERS)
names = st.sampled_from(["a", "b", "c"])


class ControllerMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.stage = Stage(Path(self.folder.name) / FILE_NAME)
        self.stage.brokers(*BROKERS)
        self.controller = self.stage.controller(1)
        for name, replicas in (("a", (1, 2, 3)), ("b", (2, 3)), ("c", (3,))):
            wait(self.controller.create_topics([NewTopic(name, assignments={0: replicas})]))

    @rule(name=names, replicas=st.lists(st.permutations(BROKERS), min_size=1, max_size=2), factor=st.integers(1, 3))
    def create(self, name: str, replicas: list[list[int]], factor: int) -> None:
        live = self.stage.cluster.brokers
        placed = [[broker for broker in chosen if broker in live][:factor] for chosen in replicas]
        assignments = {each: tuple(chosen) for each, chosen in enumerate(placed)}
        wait(self.controller.create_topics([NewTopic(name, assignments=assignments)]))
        self.agree()

    @rule(name=names, total=st.integers(1, 4))
    def grow(self, name: str, total: int) -> None:
        wait(self.controller.create_partitions([NewPartitions(name, total)]))
        self.agree()

    @rule(name=names)
    def delete(self, name: str) -> None:
        wait(self.controller.delete_topics([name]))
        self.agree()

    @rule(broker=brokers)
    def kill(self, broker: int) -> None:
        if broker in self.stage.cluster.brokers:
            self.stage.cluster.kill(broker)
            self.agree()

    @rule(broker=brokers)
    def come_back(self, broker: int) -> None:
        if broker not in self.stage.cluster.brokers:
            self.stage.cluster.add(broker)
            self.agree()

    @rule(name=names, wanted=st.permutations(BROKERS), factor=st.integers(1, 3))
    def move(self, name: str, wanted: list[int], factor: int) -> None:
        wait(self.controller.alter_reassignments({(name, 0): wanted[:factor]}))
        self.agree()

    @rule(name=names)
    def stay(self, name: str) -> None:
        wait(self.controller.alter_reassignments({(name, 0): None}))
        self.agree()

    @rule()
    def prefer(self) -> None:
        wait(self.controller.elect_leaders(ElectionType.PREFERRED, None))
        self.agree()

    @rule()
    @precondition(lambda self: len(self.stage.cluster.brokers) == len(BROKERS))
    def take_all_into_the_isr(self) -> None:
        for (name, partition), state in self.states().items():
            data = self.stage.registry.get(TopicAssignment.path(name))[0]
            assignment = TopicAssignment.decode(name, data)
            asked = AlterPartitionRequestPartitionData(
                partition_index=partition,
                leader_epoch=state.leader_epoch,
                new_isr=list(assignment.replicas[partition]),
                partition_epoch=state.version,
            )
            topic = AlterPartitionRequestTopicData(topic_name=name, partitions=[asked])
            request = AlterPartitionRequest(
                broker_id=state.leader, broker_epoch=self.stage.cluster.epoch(state.leader), topics=[topic]
            )
            answer = wait(self.controller.alter_partition(request)).topics[0].partitions[0]
            assert (answer.error_code, answer.isr) == (0, list(assignment.replicas[partition]))
        self.agree()

    @rule(broker=brokers)
    def elect_anew(self, broker: int) -> None:
        self.controller.stop()
        self.controller = self.stage.controller(broker)
        self.agree()

    def states(self) -> dict[tuple[str, int], PartitionState]:
        """All partitions of topics that nobody wants to delete."""
        registry = self.stage.registry
        found = {}
        for name in set(registry.children("/brokers/topics")) - set(registry.children("/admin/delete_topics")):
            for partition in TopicAssignment.decode(name, registry.get(TopicAssignment.path(name))[0]).replicas:
                path = PartitionState.path(name, partition)
                if registry.exists(path) is not None:
                    data, stat = registry.get(path)
                    found[name, partition] = PartitionState.decode(name, partition, data, stat.version)
        return found

    def agree(self) -> None:
        self.stage.settle(self.controller)
        live = self.stage.cluster.brokers
        states = self.states()
        for broker in live.values():
            assert broker.metadata == {partition: state.leader for partition, state in states.items()}
            assert broker.live_brokers in (set(live), set())
        for (name, partition), state in states.items():
            assert state.isr, "the last replica in sync stays"
            if state.leader == -1:
                assert not live.keys() & set(state.isr)
                continue
            assert state.leader in live
            assert state.leader in state.isr
            assert set(state.isr) <= live.keys()
            known = live[state.leader].hosted[name, partition]
            assert (known.leader, known.leader_epoch) == (state.leader, state.leader_epoch)
        for name, partition in states:
            replicas = self.stage.assignment(name).of(partition)
            assert set(states[name, partition].isr) <= set(replicas.replicas)
            assert replicas.target
            hosting = {each for each, broker in live.items() if (name, partition) in broker.hosted}
            assert hosting <= set(replicas.replicas), "who is not assigned any more was told to delete it"
        hosted = {partition for broker in live.values() for partition in broker.hosted}
        deleting = set(self.stage.registry.children("/admin/delete_topics"))
        assert {name for name, _ in hosted} <= {name for name, _ in states} | deleting

    def teardown(self) -> None:
        self.stage.close()
        self.folder.cleanup()


TestControllerModel = ControllerMachine.TestCase
TestControllerModel.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
