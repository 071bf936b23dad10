"""The audit log: Kafka's words, each refusal once, repeats counted, nothing that a client sends in lines of its own."""

import logging
from collections.abc import Iterator

import pytest

from kavka.broker.metrics.log_lines import AUDIT
from kavka.broker.security.acl import Operation, Resource, ResourceType, group, topic
from kavka.broker.security.authorizer import audit as audits
from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.security.authorizer.audit import Asked, Audit, named
from kavka.broker.security.authorizer.rights import ClientRights
from kavka.broker.settings import logger_levels
from kavka.cluster.znodes.acl import AclEntry, ResourcePattern

FETCH, METADATA, INIT_PRODUCER_ID = 1, 3, 22


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def asked(name: str = "t", principal: str = "User:eve") -> Asked:
    return Asked(principal, "10.0.0.7", Operation.READ, named(topic(name)), FETCH)


def line(name: str = "t", count: int = 1, principal: str = "User:eve") -> str:
    return (
        f"Principal = {principal} is Denied Operation = Read from host = 10.0.0.7 on resource = Topic:LITERAL:{name} "
        f"for request = Fetch with resourceRefCount = {count}"
    )


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    with caplog.at_level(logging.INFO, logger=AUDIT):
        yield caplog.messages


@pytest.fixture
def rights() -> ClientRights:
    decides = AclAuthorizer((), lambda: None)
    decides.swap({ResourcePattern("Topic", "t"): frozenset({AclEntry("User:eve", "Allow", "Describe", "*")})})
    return decides.rights("User:eve", "10.0.0.7")


def test_what_repeats_itself_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    audit = Audit(clock)
    with caplog.at_level(logging.INFO, logger=AUDIT):
        for _ in range(5):
            audit.refused(asked())
        audit.refused(asked("other"))
        assert caplog.messages == [line(), line("other")]

        clock.now_s = audits.PERIOD_S
        audit.refused(asked("other"))
        assert caplog.messages[2:] == [line(count=4), line("other")]

        audit.refused(asked("other"))
        audit.close()
        assert caplog.messages[4:] == [line("other")]


def test_many_different_refusals_are_all_logged_and_few_of_them_kept(caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(Clock())
    with caplog.at_level(logging.INFO, logger=AUDIT):
        audit.refused(asked("first"))
        audit.refused(asked("first"))
        for number in range(3 * audits.MOST_COUNTED):
            audit.refused(asked(str(number)))
    assert len(audit._repeats) == audits.MOST_COUNTED
    assert caplog.messages.count(line("first")) == 2
    assert len(caplog.messages) == 3 * audits.MOST_COUNTED + 2


def test_no_name_begins_a_line(log: list[str], caplog: pytest.LogCaptureFixture) -> None:
    audit = Audit(Clock())
    audit.refused(asked("a\nPrincipal = User:root is Allowed\r\x1b[2J", "User:e\u2028ve"))
    (told,) = caplog.messages
    assert told.isprintable()
    assert "a\\nPrincipal = User:root is Allowed\\r\\x1b[2J" in told


def test_refusals_are_told_unless_they_were_only_probed(
    rights: ClientRights, log: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert not rights.allows(Operation.READ, topic("t"), FETCH, quiet=True)
    assert not rights.allows_on_any(Operation.WRITE, ResourceType.TOPIC, INIT_PRODUCER_ID, quiet=True)
    assert not rights.unaudited(Operation.READ, ResourceType.TOPIC)("t")
    assert rights.allows(Operation.DESCRIBE, topic("t"), METADATA)
    assert caplog.messages == []

    assert not rights.allows(Operation.READ, group("g"), FETCH)
    assert not rights.allows_on_any(Operation.WRITE, ResourceType.TOPIC, INIT_PRODUCER_ID)
    assert caplog.messages == [
        (
            "Principal = User:eve is Denied Operation = Read from host = 10.0.0.7 on resource = Group:LITERAL:g "
            "for request = Fetch with resourceRefCount = 1"
        ),
        (
            "Principal = User:eve is Denied Operation = Write from host = 10.0.0.7 on resource = Topic:UNKNOWN:NONE "
            "for request = InitProducerId with resourceRefCount = 1"
        ),
    ]


def test_at_debug_what_is_allowed_is_told_too(rights: ClientRights, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger=AUDIT):
        for _ in range(2):
            assert rights.allows(Operation.DESCRIBE, Resource(ResourceType.TOPIC, "t"), METADATA)
    allowed = (
        "Principal = User:eve is Allowed Operation = Describe from host = 10.0.0.7 on resource = Topic:LITERAL:t "
        "for request = Metadata with resourceRefCount = 1"
    )
    assert [(each.levelname, each.message) for each in caplog.records] == [("DEBUG", allowed)] * 2


def test_the_audit_s_logger_has_a_level_that_operators_can_set() -> None:
    before = logging.getLogger(AUDIT).level
    try:
        logger_levels.check(AUDIT, "DEBUG")
        logger_levels.set_level(AUDIT, "DEBUG")
        assert logger_levels.levels()[AUDIT] == "DEBUG"
        assert AclAuthorizer((), lambda: None).audits_everything
    finally:
        logging.getLogger(AUDIT).setLevel(before)
