"""Three Kavka brokers on one ZooKeeper, each a process with two log directories, as Kafka's own tools see them."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kafka import KafkaProducer

from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.registries import end_session_behind
from tests.support.wire import Wire

PACKAGE: Final = "org.apache.kafka.tools"
TOPICS: Final = f"{PACKAGE}.TopicCommand"
LOG_DIRS: Final = f"{PACKAGE}.LogDirsCommand"
REASSIGN: Final = f"{PACKAGE}.reassign.ReassignPartitionsCommand"
TIMEOUT_S: Final = 120.0


class ToolCluster:
    """Three brokers, each a process with two log directories, and Kafka's tools, in one JVM.

    `zookeeper` is the brokers' connect string, with their root path.
    """

    def __init__(self, brokers: dict[int, KavkaProcess], tools: JavaTools, zookeeper: str) -> None:
        self.brokers = brokers
        self._tools = tools
        self._zookeeper, _, self._root = zookeeper.partition("/")
        self._dead: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers.values())

    def run(self, tool: str, *arguments: str | Path) -> str:
        return self._tools.run(tool, "--bootstrap-server", self.bootstrap, *arguments)

    def create(self, topic: str, assignment: str, **configs: str) -> None:
        """`assignment`: as the tool has it, `1:2:3,2:3:1`."""
        settings = [text for key, value in configs.items() for text in ("--config", f"{key.replace('_', '.')}={value}")]
        self.run(TOPICS, "--create", "--topic", topic, "--replica-assignment", assignment, *settings)
        self.wait_for(topic, [[int(each) for each in part.split(":")] for part in assignment.split(",")])

    def fill(self, topic: str, partitions: int, count: int, size_bytes: int = 1000) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap.split(","), acks="all")
        sent = [
            producer.send(topic, b"%d" % number * (size_bytes // 4), partition=number % partitions)
            for number in range(count)
        ]
        for each in sent:
            each.get(TIMEOUT_S)
        producer.close()

    def partitions(self, topic: str) -> dict[int, Any]:
        """As the first broker that lives has them; none when it has not been told of the topic."""
        return self._known(self._living()[0], topic)

    def _known(self, broker: KavkaProcess, topic: str) -> dict[int, Any]:
        return {each.partition_index: each for each in self._told(broker, topic).topics[0].partitions}

    def _known_everywhere(self, topic: str) -> dict[int, dict[int, Any]]:
        """By each broker that lives: the controller tells one after another, and may be killed between two of them."""
        return {broker.port: self._known(broker, topic) for broker in self._living()}

    def _wait_for_all(self, topic: str, is_so: Callable[[dict[int, Any]], bool], what: str) -> None:
        """Until each broker that lives knows partitions of the topic, and `is_so` is true of what it knows."""
        wait_until(
            lambda: all(known and is_so(known) for known in self._known_everywhere(topic).values()),
            TIMEOUT_S,
            lambda: f"{topic} {what}: {self._known_everywhere(topic)}",
        )

    @property
    def controller_id(self) -> int:
        return int(self._told(self._living()[0]).controller_id)

    def wait_for(self, topic: str, replicas: Sequence[Sequence[int]], leaders: Sequence[int] | None = None) -> None:
        """Until the partitions have these replicas, all in sync, and these leaders: else the first of each."""
        leaders = leaders or [wanted[0] for wanted in replicas]

        def is_so(known: dict[int, Any]) -> bool:
            return len(known) == len(replicas) and all(
                known[index].leader_id == leaders[index]
                and list(known[index].replica_nodes) == list(wanted)
                and sorted(known[index].isr_nodes) == sorted(wanted)
                for index, wanted in enumerate(replicas)
            )

        self._wait_for_all(topic, is_so, f"is not on {replicas}, led by {leaders}")

    def wait_for_replicas(self, topic: str, *replicas: set[int]) -> None:
        """Until the partitions are on these brokers, in whatever order, and all are in sync."""
        self._wait_for_all(
            topic,
            lambda known: (
                [
                    {*known[index].replica_nodes} == wanted == {*known[index].isr_nodes}
                    for index, wanted in enumerate(replicas)
                ]
                == [True] * len(known)
            ),
            f"is not on {replicas}",
        )

    def wait_for_leaders(self, topic: str, *, other_than: int) -> None:
        self._wait_for_all(
            topic,
            lambda known: all(each.leader_id not in (-1, other_than) for each in known.values()),
            f"is not led without {other_than}",
        )

    def wait_for_isr(self, topic: str, size: int) -> None:
        self._wait_for_all(
            topic,
            lambda known: all(each.leader_id > 0 and len(each.isr_nodes) == size for each in known.values()),
            "is not in sync",
        )

    def wait_for_brokers(self) -> None:
        """Until each that lives knows those that live, and no others, and their controller."""
        living = {broker_id for broker_id in self.brokers if broker_id not in self._dead}

        def all_known() -> bool:
            told = [self._told(broker) for broker in self._living()]
            return all(each.controller_id in living == {known.node_id for known in each.brokers} for each in told)

        wait_until(all_known, TIMEOUT_S, lambda: f"{living} do not know each other")

    def kill(self, broker_id: int) -> None:
        """kill -9; its session ends at once."""
        self._dead.add(broker_id)
        self.brokers[broker_id].kill()
        end_session_behind(f"/{self._root}/brokers/ids/{broker_id}", self._zookeeper)

    def start(self, broker_id: int) -> None:
        """Start one that was killed, and wait until all know each other."""
        self.brokers[broker_id].start()
        self._dead.discard(broker_id)
        self.wait_for_brokers()

    def start_the_dead(self) -> None:
        """So that a test which fails between `kill` and `start` leaves three brokers to the next."""
        for broker_id in sorted(self._dead):
            self.start(broker_id)

    def _living(self) -> list[KavkaProcess]:
        return [each for broker_id, each in self.brokers.items() if broker_id not in self._dead]

    def _told(self, broker: KavkaProcess, *topics: str) -> Any:
        with Wire(broker.host, broker.port) as wire:
            asked = [MetadataRequestTopic(name=name) for name in topics]
            return wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 8)

    def directories(self, topic: str) -> dict[int, list[tuple[str, str, bool]]]:
        """Of each broker: the directory's name, the partition, and whether it is on its way there."""
        text = self.run(LOG_DIRS, "--describe", "--topic-list", topic)
        (line,) = (line for line in text.splitlines() if line.startswith("{"))
        return {
            broker["broker"]: sorted(
                (Path(each["logDir"]).name, part["partition"], part["isFuture"])
                for each in broker["logDirs"]
                for part in each["partitions"]
            )
            for broker in json.loads(line)["brokers"]
        }

    def wait_for_directories(self, topic: str, wanted: dict[int, list[tuple[str, str, bool]]]) -> None:
        """Until `directories` has these of the brokers named."""

        def is_so() -> bool:
            found = self.directories(topic)
            return all(found[broker_id] == places for broker_id, places in wanted.items())

        wait_until(is_so, TIMEOUT_S, lambda: f"{self.directories(topic)}, not {wanted}")

    def verify(self, file: Path) -> str:
        """What ReassignPartitionsCommand says of a reassignment, once it says that nothing of it is in progress.

        Brokers tell of new replicas before the controller is done with the move.
        """
        said: list[str] = []

        def is_over() -> bool:
            said[:] = [self.run(REASSIGN, "--verify", "--reassignment-json-file", file)]
            return "is still in progress" not in said[0]

        wait_until(is_over, TIMEOUT_S, lambda: said[0])
        return said[0]

    def wait_until_shown(self, pattern: str, tool: str, *arguments: str | Path) -> None:
        """Until a tool prints what matches: it asks whichever broker, which may not have heard of a change yet."""
        said: list[str] = []

        def is_shown() -> bool:
            said[:] = [self.run(tool, *arguments)]
            return re.search(pattern, said[0]) is not None

        wait_until(is_shown, TIMEOUT_S, lambda: f"no {pattern!r} in:\n{said[0]}")
