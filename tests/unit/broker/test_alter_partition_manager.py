"""AlterPartition's sender: one request at a time, and every partition hears what became of its change."""

from collections.abc import Callable

import pytest

from kavka.broker.partitions.alter_partition_manager import RETRY_MS, AlterPartitionManager, Answer, downgraded
from kavka.broker.partitions.role import RECOVERED, GrantedIsr, PendingIsr
from kavka.protocol.codec import decode, encode
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from kavka.protocol.schema import ZERO_UUID
from tests.support.broker_handlers import topic_id_of

ME, EPOCH = 1, 40
PENDING = PendingIsr((ME, 2), (-1, 60), leader_epoch=5, partition_epoch=8, is_expansion=True)
GRANTED = GrantedIsr(5, (ME, 2), 9, RECOVERED)


class Asking:
    """A partition, and what it was told."""

    def __init__(self, topic: str = "visits", index: int = 0, retries: int = 0) -> None:
        self.topic, self.index, self.topic_id = topic, index, topic_id_of(topic)
        self.told: list[GrantedIsr | ErrorCode] = []
        self.on_told: Callable[[], object] | None = None
        self.retries = retries

    def isr_answered(self, pending: PendingIsr, answer: GrantedIsr | ErrorCode) -> bool:
        self.told.append(answer)
        if self.on_told is not None:
            self.on_told()
        self.retries -= 1
        return self.retries >= 0


class Rig:
    def __init__(self) -> None:
        self.sent: list[tuple[AlterPartitionRequest, Callable[[Answer], None]]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.manager = AlterPartitionManager(
            ME,
            lambda: EPOCH,
            lambda request, on_answer: self.sent.append((request, on_answer)),
            lambda delay_ms, job: self.later.append((delay_ms, job)),
        )

    def named(self, number: int = -1) -> list[tuple[str, int]]:
        request, _ = self.sent[number]
        return [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]

    def answer(self, *asking: Asking, code: ErrorCode = ErrorCode.NONE, by_id: bool = True) -> None:
        """To the last request: this code for these partitions."""
        _, on_answer = self.sent[-1]
        on_answer(response(*asking, code=code, by_id=by_id))

    def pass_time(self) -> None:
        (delay_ms, job), self.later = self.later[0], self.later[1:]
        assert delay_ms == RETRY_MS
        job()


def response(*asking: Asking, code: ErrorCode = ErrorCode.NONE, by_id: bool = True) -> AlterPartitionResponse:
    granted = code is ErrorCode.NONE
    topics = [
        AlterPartitionResponseTopicData(
            topic_name="" if by_id else each.topic,
            topic_id=each.topic_id if by_id else ZERO_UUID,
            partitions=[
                AlterPartitionResponsePartitionData(
                    partition_index=each.index,
                    error_code=code,
                    leader_id=ME,
                    leader_epoch=GRANTED.leader_epoch if granted else -1,
                    isr=list(GRANTED.isr) if granted else [],
                    partition_epoch=GRANTED.partition_epoch if granted else -1,
                )
            ],
        )
        for each in asking
    ]
    return AlterPartitionResponse(error_code=ErrorCode.NONE, topics=topics)


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize("by_id", [True, False])
def test_a_change_is_sent_and_its_answer_told(rig: Rig, by_id: bool) -> None:
    asking = Asking()
    rig.manager.propose(asking, PENDING)

    ((request, _),) = rig.sent
    (topic,) = request.topics
    (part,) = topic.partitions
    assert (request.broker_id, request.broker_epoch, topic.topic_name, topic.topic_id) == (
        ME,
        EPOCH,
        "visits",
        asking.topic_id,
    )
    assert (part.leader_epoch, part.partition_epoch, part.leader_recovery_state) == (5, 8, RECOVERED)
    assert [(each.broker_id, each.broker_epoch) for each in part.new_isr_with_epochs] == [(ME, EPOCH), (2, 60)]
    rig.answer(asking, by_id=by_id)
    assert asking.told == [GRANTED]
    assert rig.later == []


def test_what_is_asked_meanwhile_goes_together(rig: Rig) -> None:
    first, *others = [Asking("visits", 0), Asking("visits", 1), Asking("clicks", 0), Asking("visits", 2)]
    for each in (first, *others):
        rig.manager.propose(each, PENDING)
    assert [rig.named(number) for number in range(len(rig.sent))] == [[("visits", 0)]]

    rig.answer(first)

    assert len(rig.sent) == 2
    assert sorted(rig.named()) == [("clicks", 0), ("visits", 1), ("visits", 2)]
    assert len(rig.sent[-1][0].topics) == 2


def test_a_second_change_of_a_partition_is_not_attempted(rig: Rig) -> None:
    asking = Asking()
    rig.manager.propose(asking, PENDING)

    rig.manager.propose(asking, PENDING._replace(leader_epoch=6))

    assert asking.told == [ErrorCode.OPERATION_NOT_ATTEMPTED]
    assert len(rig.sent) == 1


def test_who_is_told_may_ask_for_the_next_change_at_once(rig: Rig) -> None:
    asking = Asking()
    rig.manager.propose(asking, PENDING)
    asking.on_told = lambda: rig.manager.propose(asking, PENDING) if len(asking.told) == 1 else None

    rig.answer(asking)

    assert (asking.told, len(rig.sent)) == ([GRANTED], 2)


def test_an_error_of_one_partition_is_its_own(rig: Rig) -> None:
    one, two = Asking(index=0), Asking(index=1)
    blocking = Asking("clicks")
    for each in (blocking, one, two):
        rig.manager.propose(each, PENDING)
    rig.answer(blocking)

    both = response(one, two)
    both.topics[0].partitions[0].error_code = ErrorCode.INELIGIBLE_REPLICA
    rig.sent[-1][1](both)

    assert (one.told, two.told) == ([ErrorCode.INELIGIBLE_REPLICA], [GRANTED])


@pytest.mark.parametrize(
    "answer",
    [
        BrokerError(ErrorCode.NETWORK_EXCEPTION),
        AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[]),
        AlterPartitionResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, topics=[]),
        AlterPartitionResponse(error_code=3210, topics=[]),
        AlterPartitionResponse(error_code=ErrorCode.NONE, topics=[]),
        response(Asking("others"), Asking("visits", 7)),
    ],
    ids=["cut off", "stale epoch", "not allowed", "unknown code", "left out", "others named"],
)
def test_what_is_not_answered_is_sent_again_after_a_while(rig: Rig, answer: Answer) -> None:
    asking = Asking()
    rig.manager.propose(asking, PENDING)
    rig.sent[-1][1](answer)
    assert (asking.told, len(rig.sent)) == ([], 1)

    rig.pass_time()

    assert rig.named() == [("visits", 0)]
    rig.answer(asking)
    assert asking.told == [GRANTED]


def test_what_a_partition_wants_tried_again_waits_a_while(rig: Rig) -> None:
    asking = Asking(retries=1)
    rig.manager.propose(asking, PENDING)
    rig.answer(asking, code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert len(rig.sent) == 1

    rig.pass_time()
    rig.answer(asking)

    assert asking.told == [ErrorCode.UNKNOWN_SERVER_ERROR, GRANTED]
    assert rig.later == []


def test_codes_and_states_that_nobody_knows_are_server_errors(rig: Rig) -> None:
    for field, value in (("error_code", 3210), ("leader_recovery_state", 9)):
        asking = Asking()
        rig.manager.propose(asking, PENDING)
        odd = response(asking)
        setattr(odd.topics[0].partitions[0], field, value)
        rig.sent[-1][1](odd)
        assert asking.told == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_answers_may_come_before_the_send_returns() -> None:
    asking = [Asking(index=index) for index in range(3)]
    manager = AlterPartitionManager(
        ME,
        lambda: EPOCH,
        lambda request, on_answer: on_answer(response(*asking)),
        lambda delay_ms, job: pytest.fail("nothing is to be tried again"),
    )

    for each in asking:
        manager.propose(each, PENDING)

    assert [each.told for each in asking] == [[GRANTED]] * 3


def test_nothing_is_sent_once_it_is_closed(rig: Rig) -> None:
    asking = Asking()
    rig.manager.propose(asking, PENDING)
    rig.manager.close()

    rig.sent[-1][1](BrokerError(ErrorCode.NETWORK_EXCEPTION))
    rig.pass_time()
    rig.manager.propose(Asking(index=1), PENDING)

    assert (len(rig.sent), asking.told) == (1, [])


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_request_fits_every_version(rig: Rig, version: int) -> None:
    rig.manager.propose(Asking(), PENDING)
    request, _ = rig.sent[-1]

    read = decode(AlterPartitionRequest, version, memoryview(encode(downgraded(request, version), version)))

    part = read.topics[0].partitions[0]
    if version < 3:
        assert (part.new_isr, part.new_isr_with_epochs) == ([ME, 2], [])
    else:
        assert [each.broker_epoch for each in part.new_isr_with_epochs] == [EPOCH, 60]
    assert request.topics[0].partitions[0].new_isr_with_epochs


def test_a_send_that_fails_at_once_is_tried_again(rig: Rig) -> None:
    refusing = [BrokerError(ErrorCode.BROKER_NOT_AVAILABLE)]
    sent: list[AlterPartitionRequest] = []

    def send(request: AlterPartitionRequest, on_answer: Callable[[Answer], None]) -> None:
        if refusing:
            raise refusing.pop()
        sent.append(request)

    manager = AlterPartitionManager(ME, lambda: EPOCH, send, lambda delay_ms, job: rig.later.append((delay_ms, job)))
    manager.propose(Asking(), PENDING)
    assert sent == []

    rig.pass_time()

    assert len(sent) == 1
