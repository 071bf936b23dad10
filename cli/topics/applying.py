"""Bringing topics to what is declared: all that can be refused is refused before anything is done."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kavka.cli.failing import Failure, Failures, excused, tried
from kavka.cli.topics.declaring import DeclaredTopic
from kavka.cli.topics.describing import described
from kavka.cli.topics.planning import ADD_PARTITIONS, CREATE, DELETE_CONFIG, SET_CONFIG, ExistingTopic, Step, planned
from kavka.client.admin.types.configs import AlterConfigOp, AlterConfigOpType, ConfigResource
from kavka.client.admin.types.topics import NewPartitions, NewTopic

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ItemErrors

PLANNED: Final = "planned"
DONE: Final = "done"
FAILED: Final = "failed"


def plan(admin: "Admin", declared: Sequence[DeclaredTopic], *, delete_undeclared: bool) -> list[Step]:
    """The steps that it takes, which the brokers say they would do. Raises Failures for what cannot be done."""
    found, failure = described(admin, [topic.name for topic in declared])
    _, failure = excused(failure, "UnknownTopicOrPartitionError")
    if failure is not None:
        raise failure
    existing = {
        topic.description.name: ExistingTopic(
            len(topic.description.partitions), len(topic.description.partitions[0].replicas), topic.configs
        )
        for topic in found
    }
    steps, refused = planned(declared, existing, delete_undeclared=delete_undeclared)
    failures: dict[str, BaseException] = {name: Failure(text) for name, text in refused.items()}
    possible = [step for step in steps if step.topic.name not in failures]
    failures.update(_failures(_run(admin, possible, dry_run=True)))
    if failures:
        raise Failures(failures)
    return list(steps)


def execute(admin: "Admin", steps: Sequence[Step]) -> "tuple[list[str], Failures | None]":
    """Do it: what became of each step, and what failed."""
    failed_by_action = _run(admin, steps, dry_run=False)
    states = []
    for step in steps:
        action = _carried_out_as(step, steps)
        has_failed = step.topic.name in failed_by_action.get(action, {})
        states.append(FAILED if has_failed else DONE)
    failures = _failures(failed_by_action)
    return states, Failures(failures) if failures else None


def _carried_out_as(step: Step, steps: Sequence[Step]) -> str:
    """A new topic's settings come with its creation; others are set and deleted at once."""
    if step.action in (CREATE, ADD_PARTITIONS):
        return step.action
    is_new = any(each.action == CREATE and each.topic is step.topic for each in steps)
    return CREATE if is_new else SET_CONFIG


def _run(admin: "Admin", steps: Sequence[Step], *, dry_run: bool) -> dict[str, dict[str, BaseException]]:
    """What failed, by action and topic."""
    new = [_new_topic(step.topic) for step in steps if step.action == CREATE]
    grown = {
        step.topic.name: NewPartitions(step.topic.partitions or 0) for step in steps if step.action == ADD_PARTITIONS
    }
    changes = _config_changes(steps, {topic.name for topic in new})
    failed: dict[str, dict[str, BaseException]] = {}
    if new:
        failed[CREATE] = _by_topic(tried(lambda: admin.create_topics(new, validate_only=dry_run))[1])
    if grown:
        done = tried(lambda: admin.create_partitions(grown, validate_only=dry_run))
        failed[ADD_PARTITIONS] = _by_topic(done[1])
    if changes:
        altered = tried(lambda: admin.incremental_alter_configs(changes, validate_only=dry_run))
        failed[SET_CONFIG] = _by_topic(altered[1])
    return failed


def _new_topic(topic: DeclaredTopic) -> NewTopic:
    return NewTopic(topic.name, topic.partitions or -1, topic.replication_factor or -1, dict(topic.configs) or None)


def _config_changes(steps: Sequence[Step], new: set[str]) -> dict[ConfigResource, list[AlterConfigOp]]:
    changes: dict[ConfigResource, list[AlterConfigOp]] = {}
    for step in steps:
        if step.topic.name in new or step.action not in (SET_CONFIG, DELETE_CONFIG):
            continue
        kind = AlterConfigOpType.SET if step.action == SET_CONFIG else AlterConfigOpType.DELETE
        value = None if step.declared is None else str(step.declared)
        changes.setdefault(ConfigResource.topic(step.topic.name), []).append(
            AlterConfigOp(step.name or "", value, kind)
        )
    return changes


def _by_topic(failure: "ItemErrors | None") -> dict[str, BaseException]:
    errors: Mapping[Any, BaseException] = {} if failure is None else failure.errors
    return {item.name if isinstance(item, ConfigResource) else item: error for item, error in errors.items()}


def _failures(by_action: Mapping[str, Mapping[str, BaseException]]) -> dict[str, BaseException]:
    """One a topic: the first."""
    found: dict[str, BaseException] = {}
    for failed in by_action.values():
        for name, error in failed.items():
            found.setdefault(name, error)
    return found
