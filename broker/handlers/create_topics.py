"""CreateTopics v0-7.

Behaviour
- The controller creates the topics; the answer comes when their partitions have leaders and the metadata shows them, or
  after the request's timeout, which leaves the creation going on (REQUEST_TIMED_OUT). A timeout of 0 or less never
  waits in vain: it turns success into REQUEST_TIMED_OUT, as Kafka's does.
- Counts of -1 mean `num.partitions` and `default.replication.factor`; a manual assignment excludes both counts.
- A name given twice is INVALID_REQUEST for all of its entries. The other topics of the request go their own way.
- Who changes more partitions than the controller mutation quota allows is refused, or before v6 paused (KIP-599).
- Not done: `create.topic.policy.class.name`.

Versions
- v1: validate only, error messages. v4: counts may be -1 (KIP-464). v5: the answer has partitions, replication factor
  and configurations (KIP-525), if the client may describe them. v6: THROTTLING_QUOTA_EXCEEDED. v7: topic ids.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kavka.broker.metadata.topic_creation import creatable
from kavka.broker.requests.handling import Context, counting, handles
from kavka.broker.security.acl import Operation, topic
from kavka.broker.settings.config_answers import topic_entries
from kavka.cluster.controller.requests import NewTopic, TopicResult
from kavka.cluster.promise import Promise
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.broker.services import Services

KRAFT_METADATA_TOPIC: Final = "__cluster_metadata"
"""Nobody may create it, as in Kafka: in its other kind of cluster it is no topic like others."""
FOUND_TWICE: Final = BrokerError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
NOT_AUTHORIZED: Final = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
STRICT_SINCE: Final = 6
"""From here on who has changed too many partitions is refused (KIP-599); before, only paused."""
LEAST_WAIT_MS: Final = 5_000
"""How long a request whose timeout is 0 may wait to learn about its errors."""


def _refused(request: CreateTopicsRequest, code: ErrorCode, message: str | None) -> CreateTopicsResponse:
    error = BrokerError(code, message)
    return CreateTopicsResponse(topics=[_failed(each.name, error) for each in request.topics])


@handles(CreateTopicsRequest, versions="0-7", error_answer=_refused)
def create_topics(
    request: CreateTopicsRequest, context: Context, services: "Services"
) -> CreateTopicsResponse | Promise[CreateTopicsResponse]:
    wanted, refused = _sort_out(request, context)
    if not wanted:
        return _answer(request, refused)
    creation = services.controller.create_topics(wanted, request.validate_only, counting(context, STRICT_SINCE))

    def respond(results: list[TopicResult]) -> CreateTopicsResponse:
        created = {result.name: _result(result, request, context, services) for result in results}
        return _answer(request, refused | created)

    def late() -> list[TopicResult]:
        timed_out = BrokerError(ErrorCode.REQUEST_TIMED_OUT)
        return [TopicResult(each.name, ZERO_UUID, timed_out) for each in wanted]

    wait_ms = request.timeout_ms if request.timeout_ms > 0 else LEAST_WAIT_MS
    return services.purgatory.within(wait_ms, creation, late).then(respond)


def _sort_out(request: CreateTopicsRequest, context: Context) -> tuple[list[NewTopic], dict[str, CreatableTopicResult]]:
    """The topics for the controller, and the results of those that never get there."""
    names = Counter(each.name for each in request.topics)
    allowed = creatable(names.keys() - {KRAFT_METADATA_TOPIC}, context)
    wanted, refused = [], {}
    for each in request.topics:
        try:
            if each.name == KRAFT_METADATA_TOPIC:
                raise BrokerError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {each.name} is prohibited.")
            if names[each.name] == 1 and each.name in allowed:
                wanted.append(_new_topic(each))
                continue
        except BrokerError as error:
            refused[each.name] = _failed(each.name, error)
            continue
        is_twice = names[each.name] > 1
        refused[each.name] = result = _failed(each.name, FOUND_TWICE if is_twice else NOT_AUTHORIZED)
        # Kafka says so of these, and of none that it has tried to create.
        result.topic_config_error_code = _config_error(each.name, context)
    return wanted, refused


def _config_error(name: str, context: Context) -> ErrorCode:
    """TOPIC_AUTHORIZATION_FAILED unless the client may be told of the topic's configuration."""
    is_told = context.allows(Operation.DESCRIBE_CONFIGS, topic(name), quiet=True)
    return ErrorCode.NONE if is_told else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _new_topic(each: CreatableTopic) -> NewTopic:
    if each.assignments and (each.num_partitions != -1 or each.replication_factor != -1):
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time.",
        )
    assignments = {part.partition_index: part.broker_ids for part in each.assignments}
    if len(assignments) < len(each.assignments):
        raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once.")
    nulls = [config.name for config in each.configs if config.value is None]
    if nulls:
        raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {config.name: config.value for config in each.configs}
    return NewTopic(each.name, each.num_partitions, each.replication_factor, assignments, configs)


def _result(
    result: TopicResult, request: CreateTopicsRequest, context: Context, services: "Services"
) -> CreatableTopicResult:
    if result.error is not None:
        return _failed(result.name, result.error)
    if request.timeout_ms <= 0 and not request.validate_only:
        return _failed(result.name, BrokerError(ErrorCode.REQUEST_TIMED_OUT))
    answer = CreatableTopicResult(
        name=result.name, topic_id=result.topic_id, error_code=ErrorCode.NONE, error_message=None, configs=[]
    )
    answer.topic_config_error_code = _config_error(result.name, context)
    if answer.topic_config_error_code != ErrorCode.NONE:
        return answer
    answer.num_partitions = result.partitions
    answer.replication_factor = result.replication_factor
    if context.api_version >= 5:
        answer.configs = _configs(result.configs, services)
    return answer


def _configs(overrides: Mapping[str, str], services: "Services") -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in topic_entries(services.config.current, overrides)
    ]


def _failed(name: str, error: BrokerError) -> CreatableTopicResult:
    message: str | None = error.message or error.code.message
    if error.code is ErrorCode.REQUEST_TIMED_OUT:
        # Not a failure of the topic, and the only code that Kafka leaves without words.
        message = None
    return CreatableTopicResult(name=name, error_code=error.code, error_message=message, configs=[])


def _answer(request: CreateTopicsRequest, results: Mapping[str, CreatableTopicResult]) -> CreateTopicsResponse:
    """The results in the request's order, each name once."""
    return CreateTopicsResponse(topics=[results[name] for name in dict.fromkeys(each.name for each in request.topics)])
