"""Answers that carry an error in the right places, for each API and version.

most APIs          as their handler says it of a whole request (`error_answer`), the broker's own knowledge
Fetch              of each partition, those of its session too, which ends: id 0 says so, and clients open another;
                   errors of the session itself at the top
Metadata           an ordinary answer, but the topics that were hit have the error
any other          at the top where the version has a place there, else mirrored: the response has an entry with the
                   error for each entry of the request
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.faults.named_partitions import ALL, topic_of
from kavka.protocol.errors import ErrorCode
from kavka.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kavka.protocol.messages.metadata import MetadataResponse
from kavka.protocol.schema import ZERO_UUID, Field, Message, schema_of

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Handler, Services

_UNKNOWN: Final = frozenset({"node_id", "port", "offset", "end_offset", "low_watermark"})

IsHit = Callable[[str, int], bool]
"""Whether (topic, partition) is to have the error; the partition is ALL for a topic as a whole."""

TOPIC_IDS_SINCE: Final = 13
NO_OFFSET: Final = -1
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_OF_WHOLE_ANSWER: Final = frozenset({ErrorCode.REBOOTSTRAP_REQUIRED})
_SAME: Final = (
    ("partition_index", "partition", "index", "partition_id"),
    ("name", "topic", "topic_name"),
    ("group_id", "key", "transactional_id"),
)
"""Names of one thing in requests and responses."""


def refusal(handler: "Handler", request: Any, version: int, code: ErrorCode, message: str | None) -> Any:
    """The response that says `code` of all that was asked for; None where there can be none (acks=0)."""
    if handler.error_answer is not None:
        answer = handler.error_answer(request, code, message)
        if answer is None or _says(answer, version, code):
            return _without_absent(answer, version)
    from kavka.protocol import api

    return mirrored(api.spec(handler.api_key).response_class, request, version, code, message)


def mirrored(response_class: type[Any], request: Any, version: int, code: ErrorCode, message: str | None) -> Any:
    """An error at the top of the response, or where this version has no place there, in entries as the request's."""
    response = response_class()
    if _say(response, version, code, message):
        _say_unknown(response)
        return response
    asked = [each for each in schema_of(type(request)).fields if each.kind == "array" and each.exists_in(version)]
    for field in schema_of(response_class).fields:
        if field.kind == "array" and field.struct is not None and field.exists_in(version) and _has_error(field.struct):
            source = next((each for each in asked if each.name == field.name), asked[0] if asked else None)
            if source is not None:
                setattr(response, field.name, _entries(field, getattr(request, source.name), version, code, message))
    return response


def failed_fetch(
    request: FetchRequest, version: int, services: "Services", code: ErrorCode, is_hit: IsHit
) -> FetchResponse:
    """The error for the partitions that are hit, nothing new for the others. The session that it names ends."""
    ended = services.fetch_sessions.end(request)
    session = ended if request.session_epoch > 0 else None
    if code in SESSION_ERRORS and version >= 7:
        return FetchResponse(error_code=code, session_id=0, responses=[])
    ids = services.metadata.current.names_by_id
    asked: dict[tuple[str, bytes], dict[int, None]] = {}
    for topic in request.topics:
        key = topic_of(topic, ids) or "", topic.topic_id
        asked.setdefault(key, {}).update(dict.fromkeys([each.partition for each in topic.partitions]))
    for known in () if session is None else list(session.partitions.values()):
        name, topic_id, index = known.key
        asked.setdefault((name, topic_id if version >= TOPIC_IDS_SINCE else ZERO_UUID), {})[index] = None
    responses = [
        FetchableTopicResponse(
            topic=name,
            topic_id=topic_id,
            partitions=[_fetched(index, code if is_hit(name, index) else ErrorCode.NONE) for index in indexes],
        )
        for (name, topic_id), indexes in asked.items()
    ]
    return FetchResponse(error_code=ErrorCode.NONE, session_id=0, responses=responses)


def failed_metadata(
    response: MetadataResponse, services: "Services", code: ErrorCode, is_hit: IsHit, partition: int | None
) -> MetadataResponse:
    """The same answer, but the topics that are hit have the error; with `partition`, it alone, and no leader.

    Where no topics are asked for, only v13 has a place for it.
    """
    if code in _OF_WHOLE_ANSWER or not response.topics:
        response.error_code = code
        return response
    ids = services.metadata.current.names_by_id
    for topic in response.topics:
        name = topic_of(topic, ids) or ""
        if partition is None:
            if is_hit(name, ALL):
                topic.error_code = code
                topic.partitions = []
            continue
        for each in topic.partitions:
            if is_hit(name, each.partition_index):
                each.error_code = code
                each.leader_id = -1
    return response


def _fetched(index: int, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=code, high_watermark=NO_OFFSET, aborted_transactions=None, records=b""
    )


def _say(message: Message, version: int, code: ErrorCode, text: str | None) -> bool:
    """Put the error into a struct's own places; whether it has one."""
    said = False
    for field in schema_of(type(message)).fields:
        if not field.exists_in(version):
            continue
        if field.kind == "int16" and field.name.endswith("error_code") and field.tag is None:
            setattr(message, field.name, code)
            said = True
        elif field.name == "error_message":
            setattr(message, field.name, text or code.message)
    return said


def _says(message: Message, version: int, code: ErrorCode) -> bool:
    """Whether the error is anywhere in it: an old version may lack the place where the handler says it."""
    for field in schema_of(type(message)).fields:
        if not field.exists_in(version):
            continue
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            if value == code:
                return True
        elif (
            field.struct is not None
            and value is not None
            and any(_says(each, version, code) for each in (value if field.kind == "array" else [value]))
        ):
            return True
    return False


def _without_absent(answer: Any, version: int) -> Any:
    """Nothing where this version has no place: it says the error elsewhere."""
    for field in schema_of(type(answer)).fields if answer is not None else ():
        if not field.exists_in(version) and field.name.startswith("error"):
            setattr(answer, field.name, field.default)
    return answer


def _say_unknown(message: Message) -> None:
    """Kafka says -1 of what it does not know."""
    for field in schema_of(type(message)).fields:
        if field.name in _UNKNOWN and field.kind in ("int32", "int64"):
            setattr(message, field.name, -1)


def _has_error(struct: type[Message]) -> bool:
    return any(
        field.name.endswith("error_code") or (field.struct is not None and _has_error(field.struct))
        for field in schema_of(struct).fields
    )


def _entries(field: Field, asked: Any, version: int, code: ErrorCode, message: str | None) -> list[Any]:
    """An entry for each of what was asked for, which is structs, or names or numbers."""
    assert field.struct is not None
    made = []
    for each in asked or ():
        entry: Any = field.struct()
        own = schema_of(field.struct).fields
        if not isinstance(each, Message):
            kind = "string" if isinstance(each, str) else "int32"
            setattr(entry, next(one.name for one in own if one.kind == kind), each)
        else:
            for one in own:
                _copy(entry, one, each)
        for one in own:
            if one.kind == "array" and one.struct is not None and _has_error(one.struct):
                inner = _inner_array(each)
                setattr(entry, one.name, _entries(one, inner, version, code, message))
        _say(entry, version, code, message)
        _say_unknown(entry)
        made.append(entry)
    return made


def _copy(entry: Any, field: Field, asked: Message) -> None:
    for names in ((field.name,), *(each for each in _SAME if field.name in each)):
        for name in names:
            if field.kind != "array" and not field.name.startswith("error") and hasattr(asked, name):
                setattr(entry, field.name, getattr(asked, name))
                return


def _inner_array(asked: Any) -> Any:
    fields = schema_of(type(asked)).fields if isinstance(asked, Message) else ()
    return next((getattr(asked, each.name) for each in fields if each.kind == "array"), ())
