"""Topics made, grown and deleted, by good requests and bad ones."""

from kavka.protocol.api import ApiKey
from kavka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kavka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kavka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.integration.oracle.answers.stage import KAFKA_43, NOWHERE, Stage, assigned, creatable, scenario


def create(stage: Stage, label: str, *topics: CreatableTopic, dry: bool = False) -> None:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=60_000)
    if stage.version >= 1:
        request.validate_only = dry
    elif dry:
        return
    stage.ask(label, request)


@scenario(ApiKey.CREATE_TOPICS)
def topics_are_created(stage: Stage) -> None:
    name = stage.name
    create(stage, "one", creatable(f"{name}.one", 3))
    create(stage, "again", creatable(f"{name}.one", 3))
    create(stage, "two", creatable(f"{name}.two"), creatable(f"{name}.three", 2))
    create(stage, "the same twice", creatable(f"{name}.four"), creatable(f"{name}.four", 2))
    create(
        stage, "with configs", creatable(f"{name}.five", configs={"retention.ms": "1000", "cleanup.policy": "compact"})
    )
    create(stage, "defaults", creatable(f"{name}.six", -1, -1))
    create(stage, "none at all")
    create(stage, "dry run", creatable(f"{name}.dry", 2, configs={"max.message.bytes": "2000"}), dry=True)
    create(stage, "dry run of what exists", creatable(f"{name}.one"), dry=True)
    create(stage, "after the dry run", creatable(f"{name}.dry"))
    create(stage, "assigned", assigned(f"{name}.seven", (0, [1]), (1, [1])))


@scenario(ApiKey.CREATE_TOPICS)
def wrong_topics_are_refused(stage: Stage) -> None:
    name = stage.name
    for number in (0, -2):
        create(stage, f"{number} partitions", creatable(f"{name}.a", number))
    for number in (0, -2, 2, 9):
        create(stage, f"{number} replicas", creatable(f"{name}.a", 1, number))
    for bad in ("", "..", ".", "not/legal", "x" * 250, "sp ace"):
        create(stage, f"named {bad[:10]!r}", creatable(bad))
    create(stage, "first", creatable(f"{name}.collides_here"))
    create(stage, "collides", creatable(f"{name}_collides.here"))
    create(stage, "unknown config", creatable(f"{name}.b", configs={"no.such.config": "1"}))
    create(stage, "bad config", creatable(f"{name}.b", configs={"retention.ms": "soon"}))
    create(stage, "config out of range", creatable(f"{name}.b", configs={"segment.bytes": "1"}))
    create(stage, "bad policy", creatable(f"{name}.b", configs={"cleanup.policy": "burn"}))
    create(stage, "null config", creatable(f"{name}.b", configs={"retention.ms": None}))
    create(
        stage, "more replicas in sync than there are", creatable(f"{name}.isr", configs={"min.insync.replicas": "5"})
    )


@scenario(ApiKey.CREATE_TOPICS, oracles=[KAFKA_43])
def wrong_assignments_are_refused(stage: Stage) -> None:
    name = stage.name
    create(stage, "and a count", assigned(f"{name}.a", (0, [1]), partitions=1))
    create(stage, "and a replication factor", assigned(f"{name}.a", (0, [1]), replication=1))
    # 3.9 creates what it then cannot give a leader, and has the client wait for it.
    create(stage, "unknown broker", assigned(f"{name}.a", (0, [77])))
    create(stage, "broker twice", assigned(f"{name}.a", (0, [1, 1])))
    create(stage, "no brokers", assigned(f"{name}.a", (0, [])))
    create(stage, "a gap", assigned(f"{name}.a", (0, [1]), (2, [1])))
    create(stage, "not from 0", assigned(f"{name}.a", (1, [1])))
    create(stage, "negative", assigned(f"{name}.a", (-1, [1])))
    create(stage, "partition twice", assigned(f"{name}.a", (0, [1]), (0, [1])))


@scenario(ApiKey.DELETE_TOPICS, "0-5")
def topics_are_deleted_by_name(stage: Stage) -> None:
    first, second = stage.topic("a"), stage.topic("b", 2)

    def delete(label: str, *names: str) -> None:
        stage.ask(label, DeleteTopicsRequest(topic_names=list(names), timeout_ms=60_000))

    delete("one", first)
    delete("again", first)
    delete("known and unknown", second, first + ".no")
    delete("illegal", "not/legal")
    delete("none")
    delete("empty name", "")
    third = stage.topic("c")
    delete("twice", third, third)


@scenario(ApiKey.DELETE_TOPICS, "6-99")
def topics_are_deleted_by_id_too(stage: Stage) -> None:
    first, second, third = stage.topic("a"), stage.topic("b", 2), stage.topic("c")
    ids = [stage.id_of(topic) for topic in (first, second, third)]

    def delete(label: str, *topics: DeleteTopicState) -> None:
        stage.ask(label, DeleteTopicsRequest(topics=list(topics), timeout_ms=60_000))

    delete("by id", DeleteTopicState(topic_id=ids[0]))
    delete("by id again", DeleteTopicState(topic_id=ids[0]))
    delete("by name", DeleteTopicState(name=second, topic_id=bytes(16)))
    delete("by name again", DeleteTopicState(name=second, topic_id=bytes(16)))
    delete("unknown id", DeleteTopicState(topic_id=NOWHERE))
    delete("name and id", DeleteTopicState(name=third, topic_id=ids[2]))
    delete("neither", DeleteTopicState(topic_id=bytes(16)))
    delete("none")
    delete("id twice", DeleteTopicState(topic_id=ids[2]), DeleteTopicState(topic_id=ids[2]))


@scenario(ApiKey.CREATE_PARTITIONS)
def topics_grow(stage: Stage) -> None:
    topic = stage.topic(partitions=2)

    def grow(label: str, name: str, count: int, *replicas: list[int], dry: bool = False) -> None:
        assignments = [CreatePartitionsAssignment(broker_ids=ids) for ids in replicas]
        asked = CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
        stage.ask(label, CreatePartitionsRequest(topics=[asked], timeout_ms=60_000, validate_only=dry))

    grow("dry run", topic, 4, dry=True)
    grow("to 3", topic, 3)
    for count in (3, 2, 0, -1):
        grow(f"to {count} next", topic, count)
    grow("assigned", topic, 5, [1], [1])
    grow("too few assignments", topic, 7, [1])
    grow("too many assignments", topic, 6, [1], [1])
    grow("unknown broker", topic, 6, [9])
    grow("broker twice", topic, 6, [1, 1])
    grow("other replication factor", topic, 7, [1], [1, 2])
    grow("unknown topic", topic + ".no", 3)
    grow("illegal topic", "not/legal", 3)
    grow("to 6", topic, 6)
    asked = [CreatePartitionsTopic(name=topic, count=count, assignments=None) for count in (8, 9)]
    stage.ask("twice", CreatePartitionsRequest(topics=asked, timeout_ms=60_000, validate_only=False))
    stage.ask("none", CreatePartitionsRequest(topics=[], timeout_ms=60_000, validate_only=False))


@scenario(ApiKey.CREATE_TOPICS)
def timeouts_of_nothing_time_out(stage: Stage) -> None:
    for timeout_ms in (0, -1):
        request = CreateTopicsRequest(topics=[creatable(f"{stage.name}.{timeout_ms}")], timeout_ms=timeout_ms)
        stage.ask(f"timeout {timeout_ms}", request)
    request = CreateTopicsRequest(topics=[creatable("not/legal")], timeout_ms=0)
    stage.ask("timeout 0, illegal", request)
