"""AlterPartition (KIP-497): a leader asks for another ISR; the controller writes it if nothing happened meanwhile."""

from __future__ import annotations

from kavka.cluster.controller.context import TopicPartition
from kavka.cluster.controller.term import Term
from kavka.cluster.registry.base import BadVersionError
from kavka.cluster.topic_ids import ZERO_ID
from kavka.cluster.znodes.topic import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)


def alter_partitions(term: Term, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """One answer for each partition, with the state as it is now: INVALID_UPDATE_VERSION means try again on that.

    A replica that may not join is INELIGIBLE_REPLICA (KIP-841); leaders that name topics (versions 0 and 1) do not know
    that error and get OPERATION_NOT_ATTEMPTED. Reassignments that this completes are for the caller to finish.

    Raises BrokerError(STALE_BROKER_EPOCH) for a broker that is dead or was restarted since.
    """
    info = term.context.brokers.get(request.broker_id)
    if info is None or request.broker_epoch != info.epoch:
        raise BrokerError(
            ErrorCode.STALE_BROKER_EPOCH, f"Broker {request.broker_id} is not alive with epoch {request.broker_epoch}."
        )
    answers: list[AlterPartitionResponseTopicData] = []
    decided: dict[TopicPartition, PartitionState] = {}
    places: dict[TopicPartition, AlterPartitionResponsePartitionData] = {}
    for topic in request.topics:
        by_id = topic.topic_id != ZERO_ID
        name = term.context.topic_of(topic.topic_id) if by_id else topic.topic_name
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partitions = []
        for asked in topic.partitions:
            answer = AlterPartitionResponsePartitionData(
                partition_index=asked.partition_index,
                error_code=ErrorCode.NONE,
                leader_id=NO_LEADER,
                leader_epoch=-1,
                isr=[],
                partition_epoch=-1,
            )
            partitions.append(answer)
            partition = (name or "", asked.partition_index)
            if name is None or name in term.context.deleting or name not in term.context.assignments:
                answer.error_code = unknown
                continue
            if partition in decided:
                # Of two changes in one request only the first can be to the state that its sender knew.
                answer.error_code = ErrorCode.INVALID_REQUEST
                continue
            outcome = _decide(term, request.broker_id, partition, asked)
            if isinstance(outcome, ErrorCode):
                is_unknown = outcome is ErrorCode.INELIGIBLE_REPLICA and not by_id
                answer.error_code = ErrorCode.OPERATION_NOT_ATTEMPTED if is_unknown else outcome
            elif outcome == term.context.leaders[partition]:
                _fill(answer, outcome)
            else:
                decided[partition] = outcome
                places[partition] = answer
        answers.append(
            AlterPartitionResponseTopicData(topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=partitions)
        )
    _write(term, decided, places)
    return AlterPartitionResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, topics=answers)


def _decide(
    term: Term, broker: int, partition: TopicPartition, asked: AlterPartitionRequestPartitionData
) -> PartitionState | ErrorCode:
    """The state to write, the present one if there is nothing to change, or why not."""
    context = term.context
    state = context.leaders.get(partition)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if asked.leader_epoch > state.leader_epoch:
        # The leader has heard of a later controller than this one.
        return ErrorCode.NOT_CONTROLLER
    if asked.leader_epoch < state.leader_epoch or state.leader != broker:
        return ErrorCode.FENCED_LEADER_EPOCH
    if asked.partition_epoch > state.version:
        return ErrorCode.NOT_CONTROLLER
    isr = _wanted_isr(asked)
    recovery = asked.leader_recovery_state
    if (isr, recovery) == (state.isr, state.recovery):
        return state
    if asked.partition_epoch < state.version:
        return ErrorCode.INVALID_UPDATE_VERSION
    unassigned = set(isr).difference(context.replicas_of(partition))
    if broker not in isr or not unassigned <= set(state.isr) or len(set(isr)) != len(isr):
        return ErrorCode.INVALID_REQUEST
    if unassigned:
        # In the ISR since before a reassignment: its leader has to let go of them, and is not to wait for orders.
        return ErrorCode.INELIGIBLE_REPLICA
    if recovery not in (RECOVERED, state.recovery) or (recovery == RECOVERING and len(isr) > 1):
        # Only an election makes a leader recover, and until it has nobody can be in sync with it (KIP-704).
        return ErrorCode.INVALID_REQUEST
    for wanted in asked.new_isr_with_epochs:
        info = context.brokers.get(wanted.broker_id)
        if info is None or wanted.broker_epoch not in (-1, info.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    joining = [each for each in isr if each not in state.isr]
    if not all(context.is_online(partition, each) for each in joining):
        return ErrorCode.INELIGIBLE_REPLICA
    return context.by_known_runs(state._replace(isr=isr, recovery=recovery, controller_epoch=term.store.epoch))


def _write(
    term: Term,
    decided: dict[TopicPartition, PartitionState],
    places: dict[TopicPartition, AlterPartitionResponsePartitionData],
) -> None:
    for partition, result in term.store.update_states(decided).items():
        answer = places[partition]
        if isinstance(result, PartitionState):
            term.context.leaders[partition] = result
            term.batch.publish([partition])
            term.reassignments.isr_changed([partition])
            _fill(answer, result)
        elif isinstance(result, BadVersionError):
            # Somebody wrote past us; know it before the leader asks again.
            term.context.leaders.update(term.store.states([partition]))
            answer.error_code = ErrorCode.INVALID_UPDATE_VERSION
        else:
            answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    term.settle()


def _wanted_isr(asked: AlterPartitionRequestPartitionData) -> tuple[int, ...]:
    if asked.new_isr_with_epochs:
        return tuple(each.broker_id for each in asked.new_isr_with_epochs)
    return tuple(asked.new_isr)


def _fill(answer: AlterPartitionResponsePartitionData, state: PartitionState) -> None:
    answer.leader_id = state.leader
    answer.leader_epoch = state.leader_epoch
    answer.isr = list(state.isr)
    answer.leader_recovery_state = state.recovery
    answer.partition_epoch = state.version
