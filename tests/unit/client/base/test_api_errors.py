"""One class for each code, of the right kind."""

import pickle

import pytest

from kavka.client import api_errors
from kavka.client.api_errors import (
    AbortableError,
    DisconnectedError,
    FatalError,
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    NotLeaderOrFollowerError,
    ProducerFencedError,
    RetriableError,
    UnknownServerError,
    UnsupportedVersionError,
    error_of,
)
from kavka.protocol.errors import ErrorCode

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.name)
def test_each_code_has_a_class_which_is_retriable_where_kafka_says_so(code: ErrorCode) -> None:
    error = error_of(code)
    assert error.code == type(error).code == code
    assert isinstance(error, RetriableError) == code.retriable
    assert str(error) == code.message
    assert str(error_of(code, "the broker's words")) == "the broker's words"
    assert getattr(api_errors, type(error).__name__) is type(error)
    assert type(error).__name__ in api_errors.__all__
    assert type(error).__doc__


def test_no_two_codes_share_a_class() -> None:
    assert len({type(error_of(code)) for code in CODES}) == len(CODES)


def test_no_error_is_both_retriable_and_fatal_or_abortable() -> None:
    for code in CODES:
        kinds = [kind for kind in (RetriableError, AbortableError, FatalError) if isinstance(error_of(code), kind)]
        assert len(kinds) <= 1, code


def test_a_code_that_is_not_known_here_keeps_its_number() -> None:
    error = error_of(9_999)
    assert type(error) is UnknownServerError
    assert error.code == 9_999
    assert "9999" in str(error)
    assert UnknownServerError.code == -1, "the class is as it was"


def test_a_time_limit_is_also_pythons() -> None:
    with pytest.raises(TimeoutError, match="after 5 ms"):
        raise KafkaTimeoutError("nothing after 5 ms")
    assert type(error_of(ErrorCode.REQUEST_TIMED_OUT)) is KafkaTimeoutError


def test_what_the_network_does_is_an_error_of_kafkas_too() -> None:
    lost = DisconnectedError("gone")
    assert isinstance(lost, NetworkError | KafkaError)
    assert lost.code == ErrorCode.NETWORK_EXCEPTION
    assert type(error_of(ErrorCode.NETWORK_EXCEPTION)) is NetworkError
    assert isinstance(error_of(ErrorCode.UNSUPPORTED_VERSION), UnsupportedVersionError)


def test_a_move_of_the_leader_asks_for_new_metadata() -> None:
    assert issubclass(NotLeaderOrFollowerError, InvalidMetadataError)


def test_errors_survive_a_pickle() -> None:
    for error in (ProducerFencedError("late"), KafkaTimeoutError("late")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.code) == (type(error), str(error), error.code)
