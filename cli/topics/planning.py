"""From topics as they are to topics as they are declared: the steps, and what cannot be done. Asks nobody."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kavka.cli.showing import Value
from kavka.cli.topics.declaring import DeclaredTopic

COLUMNS: Final = ("topic", "action", "name", "current", "declared", "state")

CREATE: Final = "create"
ADD_PARTITIONS: Final = "add partitions"
SET_CONFIG: Final = "set config"
DELETE_CONFIG: Final = "delete config"


class ExistingTopic(NamedTuple):
    """A topic that is there, with the settings that are its own."""

    partitions: int
    replication_factor: int
    configs: Mapping[str, str | None]


class Step(NamedTuple):
    """One change. `topic` has all that a new one is to be."""

    topic: DeclaredTopic
    action: str
    name: str | None = None
    current: str | int | None = None
    declared: str | int | None = None


class Plan(NamedTuple):
    """What is to be done; and why some of it cannot be, by topic, for which nothing of it may be."""

    steps: Sequence[Step]
    refused: Mapping[str, str]


def planned(
    declared: Sequence[DeclaredTopic], existing: Mapping[str, ExistingTopic], *, delete_undeclared: bool
) -> Plan:
    """What it takes."""
    steps: list[Step] = []
    refused: dict[str, str] = {}
    for topic in declared:
        there = existing.get(topic.name)
        if there is None:
            steps.append(Step(topic, CREATE))
            steps += [Step(topic, SET_CONFIG, name, None, value) for name, value in sorted(topic.configs.items())]
            continue
        if topic.partitions is not None and topic.partitions < there.partitions:
            refused[topic.name] = (
                f"it has {there.partitions} partitions, and {topic.partitions} are declared;"
                " partitions can be added, but never taken away"
            )
        elif topic.replication_factor not in (None, there.replication_factor):
            refused[topic.name] = (
                f"its replication factor is {there.replication_factor}, and {topic.replication_factor} is declared;"
                " kavka reassign changes it"
            )
        elif topic.partitions not in (None, there.partitions):
            steps.append(Step(topic, ADD_PARTITIONS, None, there.partitions, topic.partitions))
        steps += _config_steps(topic, there.configs, delete_undeclared=delete_undeclared)
    return Plan(steps, refused)


def _config_steps(topic: DeclaredTopic, current: Mapping[str, str | None], *, delete_undeclared: bool) -> list[Step]:
    steps = [
        Step(topic, SET_CONFIG, name, current.get(name), value)
        for name, value in sorted(topic.configs.items())
        if current.get(name) != value
    ]
    if delete_undeclared:
        gone = sorted(current.keys() - topic.configs.keys())
        steps += [Step(topic, DELETE_CONFIG, name, current[name], None) for name in gone]
    return steps


def step_row(step: Step, state: str) -> Sequence[Value]:
    """A step as it is shown."""
    declared: Value = step.declared
    if step.action == CREATE:
        partitions, factor = (each or "default" for each in (step.topic.partitions, step.topic.replication_factor))
        declared = f"partitions {partitions}, replication factor {factor}"
    return step.topic.name, step.action, step.name, step.current, declared, state
