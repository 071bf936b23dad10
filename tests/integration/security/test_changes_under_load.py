"""Who may enter, by which certificate, what they may do and how much: all of it changes while clients work.

Nobody whose rights stay loses a record or sees one twice; nobody appends anything once it was answered that he may not.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import pytest

from kavka.client import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    ClientQuotaEntity,
    NewTopic,
    PatternType,
    ResourceType,
    link,
)
from kavka.protocol.errors import ErrorCode
from tests.support.at_once import each_at_once
from tests.support.processes import wait_until
from tests.support.secured_broker import (
    BRIEF,
    BRIEF_MS,
    ENCRYPTED,
    PLAIN,
    SESSION_MS,
    TIMEOUT_S,
    UNLIMITED,
    SecuredBroker,
)
from tests.support.secured_load import (
    Guest,
    KavkasProducer,
    LibrdkafkasProducer,
    Prober,
    SteadyConsumer,
    SteadyProducer,
)

SHORT_S: Final = 7.0
SOAK_S: Final = float(os.environ.get("SOAK_SECONDS", "30"))
STEADY, GUESTS, SLEEPER = "steady", "guests", "sleeper"
PROBERS: Final = {"prober-1": 1, "prober-5": 5}
"""How many requests each has under way."""
PARTITIONS: Final = 3
LATE_MS: Final = 30_000
"""What a busy machine may add to when a session ends."""
RATE: Final = 300
"""Records of 200 bytes a second, of each steady producer."""
LIMIT: Final = 90_000.0
"""Bytes a second of all three: half of that."""


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients authenticate again so early that they do not come too late on a busy machine."""
    monkeypatch.setattr(link, "REAUTHENTICATED_AFTER", (0.1, 0.2))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("changing")) as made:
        topics = [GUESTS, SLEEPER, *PROBERS]
        made.admin.create_topics([NewTopic(each, num_partitions=PARTITIONS) for each in topics])
        for user in (STEADY, SLEEPER, *PROBERS):
            made.add_user(user)
        made.admin.create_acls(
            [
                AclBinding(kind, STEADY, f"User:{STEADY}", AclOperation.ALL, pattern_type=PatternType.PREFIXED)
                for kind in (ResourceType.TOPIC, ResourceType.GROUP)
            ]
        )
        made.admin.create_acls([may_write("*", GUESTS), may_write(SLEEPER, SLEEPER)])
        yield made


def may_write(user: str, topic: str) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, topic, f"User:{user}", AclOperation.WRITE)


def rights_come_and_go(secured: SecuredBroker, name: str, at_once: int) -> None:
    """Whoever sends without a pause is heard until he may not, and no longer."""
    binding = may_write(name, name)
    secured.admin.create_acls([binding])
    with Prober(name, lambda: secured.connect(UNLIMITED, name), name, at_once) as prober:
        prober.wait_for(ErrorCode.NONE, 0)
        secured.admin.delete_acls([AclBindingFilter(ResourceType.TOPIC, name)])
        revoked_ns = time.monotonic_ns()
        prober.wait_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, revoked_ns)
        # What was sent before that has run.
        end = secured.end(name)
        prober.wait_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, time.monotonic_ns())
        told = list(prober.told)
        assert secured.end(name) == end
        secured.admin.create_acls([binding])
        granted_ns = time.monotonic_ns()
        prober.wait_for(ErrorCode.NONE, granted_ns)
    assert {each.code for each in told if each.sent_ns > revoked_ns} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    assert {each.code for each in prober.told if each.sent_ns > granted_ns} == {ErrorCode.NONE}
    appended = [each.offset for each in told if each.code == ErrorCode.NONE]
    assert appended == list(range(end - len(appended), end))


def sessions_end(secured: SecuredBroker) -> None:
    """Who does not authenticate again is cut off, although he sends without a pause."""
    with Prober(SLEEPER, lambda: secured.connect(BRIEF, SLEEPER), SLEEPER, 1) as prober:
        prober.wait_for(ErrorCode.NONE, 0)
        since_ns = time.monotonic_ns()
        wait_until(lambda: prober.is_closed, TIMEOUT_S, "a session does not end")
    assert {each.code for each in prober.told} == {ErrorCode.NONE}
    # The broker's timer ends it, which has to wait for a processor as everybody.
    assert prober.told[-1].sent_ns - since_ns <= (BRIEF_MS + LATE_MS) * 1_000_000
    end = prober.told[-1].offset + 1
    assert secured.end(SLEEPER) == end


def users_come_and_go(secured: SecuredBroker, name: str) -> None:
    """Who has been removed cannot log in any more, and is out when his session has to be renewed."""
    secured.add_user(name)
    with Guest(name, secured.client(ENCRYPTED, name), GUESTS) as guest:
        guest.wait_until_heard()
        secured.remove_user(name)
        removed_ns = time.monotonic_ns()
        assert not secured.lets_in(name)
        guest.wait_until_silent(BRIEF_MS)
        assert guest.heard_ns[-1] - removed_ns <= (SESSION_MS + LATE_MS) * 1_000_000


def certificates_change(secured: SecuredBroker) -> None:
    renewed = secured.stores.authority.issue("broker")
    secured.stores.put(renewed)
    os.kill(secured.broker.process.pid, signal.SIGHUP)
    wait_until(lambda: secured.shown_certificate() == renewed.der, TIMEOUT_S, "the certificate stays")


def quotas_come_and_go(secured: SecuredBroker, producers: Sequence[SteadyProducer]) -> None:
    entity = ClientQuotaEntity.of(user=STEADY)
    secured.admin.alter_client_quotas({entity: {"producer_byte_rate": LIMIT}})
    wait_until(lambda: max(each.unacknowledged for each in producers) > RATE / 4, TIMEOUT_S, "nobody has to wait")
    secured.admin.alter_client_quotas({entity: {"producer_byte_rate": None}})
    wait_until(lambda: max(each.unacknowledged for each in producers) < RATE / 4, TIMEOUT_S, "they wait for ever")


def change_everything(secured: SecuredBroker, producers: Sequence[SteadyProducer], number: int) -> None:
    """One round, side by side. Raises what went wrong in any of it."""
    stories: dict[str, Callable[[], None]] = {
        "users": partial(users_come_and_go, secured, f"guest-{number}"),
        "sessions": partial(sessions_end, secured),
        "certificates": partial(certificates_change, secured),
        "quotas": partial(quotas_come_and_go, secured, producers),
        **{name: partial(rights_come_and_go, secured, name, at_once) for name, at_once in PROBERS.items()},
    }
    each_at_once(list(stories), lambda name: stories[name]())


def go_on(secured: SecuredBroker, topic: str, seconds: float) -> None:
    secured.admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])
    ours = [
        KavkasProducer(listener, secured.client(listener, STEADY), topic, PARTITIONS, RATE)
        for listener in (ENCRYPTED, PLAIN)
    ]
    theirs = LibrdkafkasProducer("librdkafka", secured.librdkafka(ENCRYPTED, STEADY), topic, PARTITIONS, RATE)
    producers = [*ours, theirs]
    began_s, rounds = time.monotonic(), 0
    with SteadyConsumer(secured.client(ENCRYPTED, STEADY), topic, topic) as reader:
        with ours[0], ours[1], theirs:
            while rounds < 2 or time.monotonic() - began_s < seconds:
                rounds += 1
                change_everything(secured, producers, rounds)
        reader.wait_for(sum(each.sent for each in producers))
    assert [each.acknowledged for each in producers] == [each.sent for each in producers]
    assert min(each.renewals for each in ours) >= 1
    assert [each.closed_connections for each in ours] == [0, 0]
    assert reader.numbers == {
        (each.name, partition): list(range(len(range(partition, each.sent, PARTITIONS))))
        for each in producers
        for partition in range(PARTITIONS)
    }
    assert reader.committed == reader.read


def test_what_changes_for_others_costs_nobody_a_record(secured: SecuredBroker) -> None:
    go_on(secured, f"{STEADY}-short", SHORT_S)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 300)
def test_nor_does_it_when_it_goes_on(secured: SecuredBroker) -> None:
    go_on(secured, f"{STEADY}-long", SOAK_S)
