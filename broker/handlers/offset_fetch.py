"""OffsetFetch v1-10.

Behaviour
- Each group is asked of its own coordinator; the answer waits until what it says is committed. Topics that the client
  may not describe are refused one by one, and left out where all of a group's topics were asked for.
- Not done: v0, which read offsets from ZooKeeper.

Versions
- v2: null for all topics, and an error for the whole group; v1 has it on every partition.
- v7: `require_stable` (KIP-447). v8: several groups (KIP-709). v9: member id and epoch (KIP-848). v10: topics by id,
  UNKNOWN_TOPIC_ID.
"""

from typing import TYPE_CHECKING, Final

from kavka.broker.requests.handling import Context, handles
from kavka.broker.security.acl import Operation, group, topic
from kavka.cluster.promise import Promise, gather
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kavka.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from kavka.broker.services import Services

FIRST_VERSION_WITH_GROUP_ERRORS: Final = 2
FIRST_VERSION_WITH_GROUPS: Final = 8
FIRST_VERSION_WITH_TOPIC_IDS: Final = 10
NO_OFFSET: Final = -1


def _refused(request: OffsetFetchRequest, code: ErrorCode, _message: str | None) -> OffsetFetchResponse:
    if request.groups:
        return OffsetFetchResponse(groups=[_group_error(each, code) for each in request.groups])
    return OffsetFetchResponse(error_code=code)


@handles(OffsetFetchRequest, versions="1-10", error_answer=_refused)
def offset_fetch(
    request: OffsetFetchRequest, context: Context, services: "Services"
) -> OffsetFetchResponse | Promise[OffsetFetchResponse]:
    version = context.api_version
    asked = _groups(request, version)
    answers = [_GroupFetch(each, context, services).start(request.require_stable) for each in asked]
    return gather(answers, lambda groups: _response(groups, version), effects_complete=True).or_response()


class _GroupFetch:
    """One group of the request on its way to its coordinator and back.

    Threads: made and started by the request's I/O thread; answered once, by any.
    """

    __slots__ = ("_all_topics", "_answer", "_asked", "_context", "_refused", "_services")

    def __init__(self, asked: OffsetFetchRequestGroup, context: Context, services: "Services") -> None:
        self._asked = asked
        self._all_topics = asked.topics is None
        self._context = context
        self._services = services
        self._refused: list[OffsetFetchResponseTopics] = []
        self._answer: Final[Promise[OffsetFetchResponseGroup]] = Promise()

    def start(self, require_stable: bool) -> Promise[OffsetFetchResponseGroup]:
        asked = self._asked
        if not self._context.allows(Operation.DESCRIBE, group(asked.group_id)):
            self._answer.complete(_group_error(asked, ErrorCode.GROUP_AUTHORIZATION_FAILED))
            return self._answer
        if asked.topics is not None:
            asked.topics = self._allowed(asked.topics)
        self._services.groups.run(
            asked.group_id,
            lambda shard: shard.fetch(asked, self._fetched, require_stable=require_stable),
            lambda error: self._answer.complete(_group_error(asked, error.code)),
        )
        return self._answer

    def _allowed(self, topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
        """The topics that the client may describe, by name; the others' answers are kept for later."""
        by_id = self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        names = self._services.metadata.current.names_by_id
        allowed = []
        for each in topics:
            if by_id:
                each.name = names.get(each.topic_id, "")
            if by_id and not each.name:
                self._refused.append(_topic_error(each, ErrorCode.UNKNOWN_TOPIC_ID))
            elif self._context.allows(Operation.DESCRIBE, topic(each.name)):
                allowed.append(each)
            else:
                self._refused.append(_topic_error(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        return allowed

    def _fetched(self, answer: OffsetFetchResponseGroup) -> None:
        if self._all_topics:
            answer.topics = [each for each in answer.topics if self._may_be_told(each)]
        else:
            answer.topics += self._refused
        self._answer.complete(answer)

    def _may_be_told(self, each: OffsetFetchResponseTopics) -> bool:
        if self._context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            each.topic_id = self._services.metadata.current.topic_id(each.name)
            if each.topic_id == ZERO_UUID:
                return False
        return self._context.allows(Operation.DESCRIBE, topic(each.name))


def _groups(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    if version >= FIRST_VERSION_WITH_GROUPS:
        return request.groups
    if request.topics is None:
        return [OffsetFetchRequestGroup(group_id=request.group_id, topics=None)]
    topics = [
        OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes) for each in request.topics
    ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def _group_error(asked: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """Its topics have the error too, for the versions that have no place for a group's."""
    topics = [_topic_error(each, code) for each in asked.topics or ()]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics, error_code=code)


def _topic_error(asked: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code)
        for index in asked.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=partitions)


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= FIRST_VERSION_WITH_GROUP_ERRORS:
        for each in groups:
            if each.error_code != ErrorCode.NONE:
                each.topics = []
    if version >= FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=groups)
    (only,) = groups
    topics = [
        OffsetFetchResponseTopic(name=each.name, partitions=[_as_before_groups(part) for part in each.partitions])
        for each in only.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=only.error_code)


def _as_before_groups(part: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=part.partition_index,
        committed_offset=part.committed_offset,
        committed_leader_epoch=part.committed_leader_epoch,
        metadata=part.metadata,
        error_code=part.error_code,
    )
