"""Configurations described and altered."""

from kavka.protocol.api import ApiKey
from kavka.protocol.messages import alter_configs, incremental_alter_configs
from kavka.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kavka.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.integration.oracle.answers.stage import KAFKA_43, TIME_TO_SETTLE_S, Stage, scenario
from tests.support.processes import wait_until

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(stage: Stage, label: str, kind: int, name: str, *keys: str, version: int | None = None) -> None:
    """Describe all keys, or those named."""
    stage.settle()
    if version is None:
        version = stage.version
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    request = DescribeConfigsRequest(resources=[resource])
    if version >= 1:
        request.include_synonyms = True
    if version >= 3:
        request.include_documentation = True
    stage.ask(label, request, version)


@scenario(ApiKey.DESCRIBE_CONFIGS)
def topics_configs_are_described(stage: Stage) -> None:
    topic = stage.topic(retention_ms="1234", cleanup_policy="compact,delete")
    describe(stage, "all", TOPIC, topic)
    describe(stage, "two", TOPIC, topic, "retention.ms", "segment.bytes")
    describe(stage, "unknown key", TOPIC, topic, "no.such.key")
    describe(stage, "unknown topic", TOPIC, topic + ".no")
    describe(stage, "illegal topic", TOPIC, "not/legal")
    describe(stage, "empty topic", TOPIC, "")


@scenario(ApiKey.DESCRIBE_CONFIGS)
def brokers_configs_are_described(stage: Stage) -> None:
    describe(stage, "all", BROKER, "1")
    describe(stage, "default", BROKER, "")
    describe(stage, "some", BROKER, "1", "log.retention.ms", "log.retention.hours", "log.segment.bytes")
    describe(stage, "another broker", BROKER, "77")
    describe(stage, "not a number", BROKER, "abc")


@scenario(ApiKey.DESCRIBE_CONFIGS)
def other_resources_are_described_or_refused(stage: Stage) -> None:
    for kind in (0, 1, 3, 16, 32, 77):
        describe(stage, f"type {kind}", kind, "x")
    describe(stage, "another broker's loggers", LOGGER, "77")
    describe(stage, "loggers of no number", LOGGER, "abc")


def alter_group(stage: Stage, label: str, name: str, *rows: tuple[str, int, str | None]) -> None:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in rows
    ]
    resource = incremental_alter_configs.AlterConfigsResource(resource_type=GROUP, resource_name=name, configs=configs)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    stage.ask(label, request, 1)


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS, "1-99", [KAFKA_43])
def groups_configs_are_altered(stage: Stage) -> None:
    group = f"{stage.name}/group"
    alter_group(stage, "set", group, (HEARTBEAT, SET, "6000"), (SESSION, SET, "50000"))
    describe(stage, "all", GROUP, group, HEARTBEAT, SESSION, version=4)
    alter_group(stage, "delete", group, (HEARTBEAT, DELETE, None))
    describe(stage, "deleted", GROUP, group, HEARTBEAT, SESSION, version=4)
    for value in ("1", "0", "99999", "soon", "", None):
        alter_group(stage, f"heartbeat of {value}", group, (HEARTBEAT, SET, value))
        alter_group(stage, f"session of {value}", group, (SESSION, SET, value))
    alter_group(stage, "append", group, (HEARTBEAT, APPEND, "1"))
    alter_group(stage, "unknown key", group, ("no.such.key", SET, "1"))
    alter_group(stage, "delete an unknown key", group, ("no.such.key", DELETE, None))
    alter_group(stage, "nothing", group)
    alter_group(stage, "no name", "", (HEARTBEAT, SET, "6000"))
    describe(stage, "no name", GROUP, "", version=4)
    alter_group(stage, "undone", group, (SESSION, DELETE, None))


@scenario(ApiKey.LIST_CONFIG_RESOURCES, "0-99", [KAFKA_43])
def resources_with_configs_are_listed(stage: Stage) -> None:
    group = f"{stage.name}.group"

    def listed() -> bool:
        answer = stage.client.ask(ListConfigResourcesRequest(resource_types=[GROUP]), 1)
        return group in [resource.resource_name for resource in answer.config_resources]

    stage.ask("none", ListConfigResourcesRequest(), 0)
    stage.ask("no groups", ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    alter_group(stage, "set", group, (HEARTBEAT, SET, "6000"))
    wait_until(listed, TIME_TO_SETTLE_S, "the group is not listed")
    stage.ask("groups", ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    for kind in (BROKER, LOGGER, 16, 0, 1, 3, 77, -1):
        stage.ask(f"type {kind}", ListConfigResourcesRequest(resource_types=[kind]), 1)
    stage.ask("several", ListConfigResourcesRequest(resource_types=[GROUP, BROKER, GROUP]), 1)
    alter_group(stage, "undone", group, (HEARTBEAT, DELETE, None))
    wait_until(lambda: not listed(), TIME_TO_SETTLE_S, "the group is still listed")
    stage.ask("groups at last", ListConfigResourcesRequest(resource_types=[GROUP]), 1)


@scenario(ApiKey.ALTER_CONFIGS)
def configs_are_replaced(stage: Stage) -> None:
    topic = stage.topic(retention_ms="1234")

    def alter(label: str, kind: int, name: str, dry: bool = False, **configs: str | None) -> None:
        rows = [alter_configs.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        resource = alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
        stage.ask(label, alter_configs.AlterConfigsRequest(resources=[resource], validate_only=dry))

    alter("replaced", TOPIC, topic, segment_bytes="20000000")
    describe(stage, "shows it", TOPIC, topic, version=1)
    alter("dry run", TOPIC, topic, dry=True, max_message_bytes="5000")
    alter("bad value", TOPIC, topic, retention_ms="soon")
    alter("unknown key", TOPIC, topic, no_such="1")
    alter("null value", TOPIC, topic, retention_ms=None)
    alter("unknown topic", TOPIC, topic + ".no", retention_ms="1")
    alter("illegal topic", TOPIC, "not/legal", retention_ms="1")
    alter("nothing", TOPIC, topic)
    describe(stage, "is empty", TOPIC, topic, "segment.bytes", version=1)
    alter("another broker", BROKER, "77", log_cleaner_threads="1")
    alter("no broker", BROKER, "abc", log_cleaner_threads="1")
    alter("broker, read-only", BROKER, "1", log_dirs="/tmp")
    alter("type 77", 77, "x", a="1")
    alter("type 0", 0, "x", a="1")


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def configs_are_altered_one_by_one(stage: Stage) -> None:
    topic = stage.topic(retention_ms="1234")

    def alter(
        label: str, *rows: tuple[str, int, str | None], name: str = topic, kind: int = TOPIC, dry: bool = False
    ) -> None:
        configs = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in rows
        ]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=configs
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
        stage.ask(label, request)

    alter("set", ("segment.bytes", SET, "20000000"), ("max.message.bytes", SET, "3000"))
    alter("delete", ("retention.ms", DELETE, None))
    alter("delete what is not set", ("flush.ms", DELETE, ""))
    alter("append", ("cleanup.policy", APPEND, "compact"))
    alter("append again", ("cleanup.policy", APPEND, "compact"))
    describe(stage, "all", TOPIC, topic, version=1)
    alter("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    alter("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    describe(stage, "policy", TOPIC, topic, "cleanup.policy", version=1)
    alter("append to a number", ("segment.bytes", APPEND, "1"))
    alter("set to null", ("segment.bytes", SET, None))
    alter("delete with a value", ("segment.bytes", DELETE, "5"))
    alter("a key twice", ("segment.bytes", SET, "30000000"), ("segment.bytes", SET, "40000000"))
    alter("bad value", ("segment.bytes", SET, "many"))
    alter("out of range", ("segment.bytes", SET, "1"))
    alter("unknown key", ("no.such.key", SET, "1"))
    alter("delete an unknown key", ("no.such.key", DELETE, None))
    alter("operation 9", ("segment.bytes", 9, "1"))
    alter("dry run", ("segment.bytes", SET, "50000000"), dry=True)
    alter("nothing")
    describe(stage, "at the end", TOPIC, topic, "segment.bytes", version=1)
    alter("unknown topic", ("segment.bytes", SET, "20000000"), name=topic + ".no")
    alter("illegal topic", ("segment.bytes", SET, "20000000"), name="not/legal")
    alter("type 77", ("a", SET, "1"), kind=77)
    alter("another broker", ("log.cleaner.threads", SET, "1"), kind=BROKER, name="77")
    alter("read-only", ("log.dirs", SET, "/tmp"), kind=BROKER, name="1")
    alter("unknown broker key", ("no.such.key", SET, "1"), kind=BROKER, name="1", dry=True)
    alter("bad broker value", ("num.io.threads", SET, "-4"), kind=BROKER, name="1")
    alter("per broker only, for all", ("listener.security.protocol.map", SET, "A:PLAINTEXT"), kind=BROKER, name="")


def value_of(stage: Stage, key: str) -> str | None:
    """What the broker says that it uses."""
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[key])
    (result,) = stage.client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    value: str | None = result.configs[0].value
    return value


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def brokers_configs_are_altered(stage: Stage) -> None:
    def alter(label: str, name: str, key: str, operation: int, value: str | None) -> None:
        row = incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=BROKER, resource_name=name, configs=[row]
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        stage.ask(label, request)

    load_factor, retention = "log.cleaner.io.buffer.load.factor", "log.retention.ms"
    before = {key: value_of(stage, key) for key in (load_factor, retention)}
    assert "7200000" not in before.values()
    try:
        alter("of one", "1", load_factor, SET, "0.8")
        alter("of all", "", retention, SET, "7200000")
        wait_until(lambda: value_of(stage, retention) == "7200000", TIME_TO_SETTLE_S, "log.retention.ms is not set")
        stage.ask(
            "nothing", incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[], validate_only=False)
        )
    finally:
        alter("of one, undone", "1", load_factor, DELETE, None)
        alter("of all, undone", "", retention, DELETE, None)
        # A broker hears of it later, and the next scenario would see what this one left.
        wait_until(lambda: {key: value_of(stage, key) for key in before} == before, TIME_TO_SETTLE_S, "not given back")


@scenario(ApiKey.DESCRIBE_CONFIGS)
def resources_configs_are_described_together(stage: Stage) -> None:
    topic = stage.topic(retention_ms="1234")
    rows = ((TOPIC, topic, ["retention.ms"]), (TOPIC, topic + ".no", None), (BROKER, "1", ["log.retention.ms"]))
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in (*rows, rows[0])
    ]
    stage.ask("several", DescribeConfigsRequest(resources=resources))
    empty = DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=[])
    stage.ask("no keys", DescribeConfigsRequest(resources=[empty]))
    stage.ask("no resources", DescribeConfigsRequest(resources=[]))
