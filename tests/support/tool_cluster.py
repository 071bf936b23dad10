"""Three Kavka brokers on one ZooKeeper, each a process with two log directories, as Kafka's own tools see them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kafka import KafkaProducer

from kavka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.java_tools import JavaTools
from tests.support.kavka_process import KavkaProcess
from tests.support.processes import wait_until
from tests.support.wire import Wire

PACKAGE: Final = "org.apache.kafka.tools"
TOPICS: Final = f"{PACKAGE}.TopicCommand"
LOG_DIRS: Final = f"{PACKAGE}.LogDirsCommand"
REASSIGN: Final = f"{PACKAGE}.reassign.ReassignPartitionsCommand"
TIMEOUT_S: Final = 120.0


class ToolCluster:
    """Three brokers, each a process with two log directories, and Kafka's tools, in one JVM."""

    def __init__(self, brokers: dict[int, KavkaProcess], tools: JavaTools) -> None:
        self.brokers = brokers
        self._tools = tools
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
        producer = KafkaProducer(bootstrap_servers=self.bootstrap.split(","), acks="all", retries=1000)
        for number in range(count):
            producer.send(topic, b"%d" % number * (size_bytes // 4), partition=number % partitions)
        producer.flush(TIMEOUT_S)
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

    def kill(self, broker_id: int) -> None:
        self._dead.add(broker_id)
        self.brokers[broker_id].kill()

    def start(self, broker_id: int) -> None:
        self.brokers[broker_id].start()
        self._dead.discard(broker_id)

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

    def verify(self, file: Path, *arguments: str) -> str:
        """What ReassignPartitionsCommand says of a reassignment."""
        return self.run(REASSIGN, "--verify", "--reassignment-json-file", file, *arguments)
