"""Delegation tokens over a registry: made, renewed, ended and expired, by who may, and heard of by other brokers."""

from __future__ import annotations

import hashlib
import hmac as hmac_of
import logging
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kavka.broker.security.credentials import registry_worker
from kavka.broker.security.credentials.delegation_tokens import DelegationTokens, KnownToken
from kavka.broker.security.credentials.registry_worker import MOST_WAITING, RegistryWorker
from kavka.cluster.notices import NOTICE_LIFE_MS
from kavka.cluster.promise import Promise
from kavka.cluster.registry.base import delete_trees
from kavka.cluster.registry.memory import MemoryEnsemble, MemoryRegistry
from kavka.cluster.znodes.delegation_token import (
    MOST_RENEWERS,
    TOKEN_CHANGE_PREFIX,
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    DelegationTokenNode,
)
from kavka.config import BrokerConfig
from kavka.config.values import LONG_MAX
from kavka.protocol.errors import BrokerError, ErrorCode
from tests.support.processes import wait_until

ALICE, BOB, EVE = "User:alice", "User:bob", "User:eve"
HOUR_MS = 3_600_000
TIMEOUT_S = 60
CONFIG = BrokerConfig(
    {"delegation.token.max.lifetime.ms": str(10 * HOUR_MS), "delegation.token.expiry.time.ms": str(HOUR_MS)}
)


class Stage:
    """Brokers with tokens, on one tree, at a time that the test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.ensemble = MemoryEnsemble(lambda: self.now_ms)
        self.registry = MemoryRegistry(self.ensemble)
        self._workers: list[RegistryWorker] = []

    def broker(self, secret: str = "the cluster's") -> DelegationTokens:
        """Another one, which has started."""
        worker = RegistryWorker()
        self._workers.append(worker)
        registry = MemoryRegistry(self.ensemble)
        tokens = DelegationTokens(registry, secret, lambda: CONFIG, lambda: self.now_ms, worker)
        tokens.start()
        return tokens

    def stored(self) -> list[str]:
        return self.registry.children(TOKENS_PATH)

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


def create(tokens: DelegationTokens, owner: str = ALICE, *renewers: str, max_lifetime_ms: int = -1) -> KnownToken:
    return tokens.create(owner, owner, renewers, max_lifetime_ms).result(TIMEOUT_S)


def refusal(asked: Promise[Any]) -> ErrorCode:
    with pytest.raises(BrokerError) as refused:
        asked.result(TIMEOUT_S)
    return refused.value.code


def test_a_token_is_known_by_the_hmac_of_its_id_and_lasts_as_long_as_it_may(stage: Stage) -> None:
    token = create(stage.broker(), ALICE, BOB)

    expected = hmac_of.new(b"the cluster's", token.information.token_id.encode(), hashlib.sha512).digest()
    assert token.hmac == expected
    assert token.information.max_timestamp_ms == stage.now_ms + 10 * HOUR_MS
    assert token.information.expiry_timestamp_ms == stage.now_ms + HOUR_MS
    assert create(stage.broker(), max_lifetime_ms=5).information.expiry_timestamp_ms == stage.now_ms + 5
    longest = create(stage.broker(), max_lifetime_ms=(1 << 63) - 1).information
    assert longest.max_timestamp_ms == stage.now_ms + 10 * HOUR_MS


def test_a_login_finds_a_token_until_it_expires(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens)

    found = tokens.find(token.information.token_id)
    assert found is not None
    assert (found.owner, found.expiry_ms) == (ALICE, token.information.expiry_timestamp_ms)
    assert found.hmac_text == b64encode(token.hmac).decode()
    stage.now_ms += HOUR_MS + 1
    assert tokens.find(token.information.token_id) is None
    assert tokens.find("unknown") is None


def test_other_brokers_hear_of_tokens_and_one_that_starts_reads_them(stage: Stage) -> None:
    first, second = stage.broker(), stage.broker()
    token = create(first, ALICE, BOB)
    token_id = token.information.token_id

    wait_until(lambda: second.find(token_id) is not None, TIMEOUT_S, "no notice was heard")
    assert stage.broker().find(token_id) == first.find(token_id)
    later = second.renew(BOB, token.hmac, 2 * HOUR_MS).result(TIMEOUT_S)
    wait_until(lambda: _expiry(first, token_id) == later, TIMEOUT_S, "no renewal was heard")
    second.expire(ALICE, token.hmac, -1).result(TIMEOUT_S)
    wait_until(lambda: first.find(token_id) is None, TIMEOUT_S, "no removal was heard")
    assert first.tokens() == []


def _expiry(tokens: DelegationTokens, token_id: str) -> int | None:
    found = tokens.find(token_id)
    return None if found is None else found.expiry_ms


def test_owner_and_renewers_renew_and_end_a_token_and_nobody_else_does(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens, ALICE, BOB)
    stage.now_ms += 1000

    for principal in (ALICE, BOB):
        assert tokens.renew(principal, token.hmac, 5000).result(TIMEOUT_S) == stage.now_ms + 5000
        assert tokens.expire(principal, token.hmac, 4000).result(TIMEOUT_S) == stage.now_ms + 4000
    for change in (tokens.renew, tokens.expire):
        assert refusal(change(EVE, token.hmac, 5000)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refusal(tokens.expire(EVE, token.hmac, -1)) is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert tokens.find(token.information.token_id) is not None


def test_no_renewal_goes_beyond_a_tokens_greatest_age(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens)

    assert tokens.renew(ALICE, token.hmac, -1).result(TIMEOUT_S) == stage.now_ms + HOUR_MS
    assert tokens.renew(ALICE, token.hmac, (1 << 63) - 1).result(TIMEOUT_S) == token.information.max_timestamp_ms


def test_an_expired_token_is_not_renewed_but_can_be_removed(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens)
    stage.now_ms += HOUR_MS + 1

    assert refusal(tokens.renew(ALICE, token.hmac, -1)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert refusal(tokens.expire(ALICE, token.hmac, 9)) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert tokens.expire(ALICE, token.hmac, -1).result(TIMEOUT_S) == stage.now_ms
    assert stage.stored() == []
    assert refusal(tokens.expire(ALICE, token.hmac, -1)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_are_removed_and_those_that_another_broker_renewed_stay(stage: Stage) -> None:
    tokens = stage.broker()
    gone, kept = create(tokens), create(tokens)
    kept_id = kept.information.token_id
    renewed = kept.information._replace(expiry_timestamp_ms=stage.now_ms + 5 * HOUR_MS)
    stage.registry.set(DelegationTokenNode.path(kept_id), DelegationTokenNode.encode(renewed))
    stage.now_ms += 2 * HOUR_MS

    tokens.remove_expired()

    wait_until(lambda: stage.stored() == [kept_id], TIMEOUT_S, lambda: str(stage.stored()))
    wait_until(lambda: tokens.find(kept_id) is not None, TIMEOUT_S, "the renewal was not read")
    assert gone.information.token_id not in [each.information.token_id for each in tokens.tokens()]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"version":3}', b"\xff" * 100, b'{"version":3,"owner":' + b"[" * 100_000]
)
def test_garbage_in_the_tree_is_left_out_and_stops_nothing(
    stage: Stage, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = stage.broker()
    token = create(tokens)
    with caplog.at_level(logging.CRITICAL):
        for token_id in (token.information.token_id, "a-new-one"):
            path = DelegationTokenNode.path(token_id)
            if stage.registry.exists(path) is None:
                stage.registry.create(path, data)
            else:
                stage.registry.set(path, data)
            stage.registry.create(TOKEN_CHANGE_PREFIX, token_id.encode(), sequential=True)
        for notice in (b"", b"\xff", b"a/b", b"..", b"x" * 100_000, "\U0001f600".encode()):
            stage.registry.create(TOKEN_CHANGE_PREFIX, notice, sequential=True)

        wait_until(lambda: tokens.tokens() == [], TIMEOUT_S, "the broken token is still known")
        assert stage.broker().tokens() == []
        assert refusal(tokens.renew(ALICE, token.hmac, -1)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert tokens.find(create(tokens).information.token_id) is not None


def test_old_notices_are_removed_and_young_ones_stay_for_slower_brokers(stage: Stage) -> None:
    tokens = stage.broker()
    create(tokens)
    first = stage.registry.children(TOKEN_CHANGES_PATH)
    stage.now_ms += NOTICE_LIFE_MS + 1

    create(tokens)

    wait_until(lambda: not set(first) & set(stage.registry.children(TOKEN_CHANGES_PATH)), TIMEOUT_S, "it stays")
    assert len(stage.registry.children(TOKEN_CHANGES_PATH)) == 1


def test_a_new_token_costs_the_same_however_many_notices_there_are(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    get_many = MemoryRegistry.get_many

    def counted(registry: MemoryRegistry, paths: Sequence[str], *more: Any) -> Any:
        read.append(len(paths))
        return get_many(registry, paths, *more)

    tokens = stage.broker()
    for _ in range(500):
        create(tokens)
    monkeypatch.setattr(MemoryRegistry, "get_many", counted)
    create(tokens)
    tokens.renew(ALICE, tokens.tokens()[0].hmac, -1).result(TIMEOUT_S)

    assert 0 < sum(read) < 100

    stage.now_ms += NOTICE_LIFE_MS + 1
    create(tokens)
    wait_until(lambda: len(stage.registry.children(TOKEN_CHANGES_PATH)) == 1, TIMEOUT_S, "old notices stay")


def test_a_token_that_may_last_for_ever_can_be_stored_and_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for_ever = {name: str(LONG_MAX) for name in ("delegation.token.max.lifetime.ms", "delegation.token.expiry.time.ms")}
    monkeypatch.setattr(sys.modules[__name__], "CONFIG", BrokerConfig(for_ever))

    made = create(stage.broker())

    assert made.information.expiry_timestamp_ms == LONG_MAX
    assert [each.information for each in stage.broker().tokens()] == [made.information]


def test_a_broker_with_another_secret_knows_no_token_by_its_hmac(stage: Stage) -> None:
    token = create(stage.broker())
    other = stage.broker("another")

    assert refusal(other.renew(ALICE, token.hmac, -1)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_too_many_renewers_are_refused(stage: Stage) -> None:
    renewers = tuple(f"User:{number}" for number in range(MOST_RENEWERS + 1))

    assert refusal(stage.broker().create(ALICE, ALICE, renewers, -1)) is ErrorCode.INVALID_REQUEST


def test_a_new_session_reads_all_tokens_again(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens)
    worker, held = RegistryWorker(), threading.Event()
    registry = MemoryRegistry(stage.ensemble)
    other = DelegationTokens(registry, "the cluster's", lambda: CONFIG, lambda: stage.now_ms, worker)
    other.start()
    worker.run(lambda: held.wait(TIMEOUT_S))
    tokens.expire(ALICE, token.hmac, -1).result(TIMEOUT_S)
    for name in stage.registry.children(TOKEN_CHANGES_PATH):
        stage.registry.delete(f"{TOKEN_CHANGES_PATH}/{name}")
    registry.expire()
    held.set()

    wait_until(lambda: other.tokens() == [], TIMEOUT_S, "what was removed meanwhile is still known")
    worker.stop()


def test_tokens_end_and_are_made_though_somebody_removed_what_their_notices_hang_on(stage: Stage) -> None:
    tokens, other = stage.broker(), stage.broker()
    first, second, third = (create(tokens) for _ in range(3))
    wait_until(lambda: len(other.tokens()) == 3, TIMEOUT_S, "not all tokens are known")

    def clear() -> None:
        delete_trees(stage.registry, [TOKEN_CHANGES_PATH])

    clear()
    tokens.expire(ALICE, first.hmac, -1).result(TIMEOUT_S)
    assert tokens.find(first.information.token_id) is None
    assert len(stage.stored()) == 2
    clear()
    assert tokens.renew(ALICE, second.hmac, 5).result(TIMEOUT_S) == stage.now_ms + 5
    clear()
    create(tokens)
    clear()
    tokens.expire(ALICE, third.hmac, -1).result(TIMEOUT_S)
    wait_until(lambda: other.find(third.information.token_id) is None, TIMEOUT_S, "what has ended is still believed")


def test_all_tokens_are_read_where_nobody_knows_what_a_notice_tells_of(stage: Stage) -> None:
    tokens = stage.broker()
    token = create(tokens).information.token_id
    stage.registry.delete(DelegationTokenNode.path(token))
    stage.registry.create(TOKEN_CHANGE_PREFIX, b"of/another/form", sequential=True)
    wait_until(lambda: tokens.find(token) is None, TIMEOUT_S, "what has ended is still believed")


def test_a_look_that_failed_is_made_again_however_many_ask_for_other_things(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who polls for users or quotas kept a broker from hearing that a token has ended."""
    monkeypatch.setattr(registry_worker, "RETRY_S", 0.01)
    worker, looks = RegistryWorker(), 0
    is_seen = threading.Event()

    def look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 2:
            is_seen.set()
        return looks == 2

    def ask() -> None:
        if not is_seen.is_set():
            worker.run(ask)

    worker.look(look)
    worker.run(ask)
    try:
        assert is_seen.wait(TIMEOUT_S)
    finally:
        is_seen.set()
        worker.stop()


def test_neither_a_token_nor_what_is_logged_of_it_shows_its_secret(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        tokens = stage.broker()
        token = create(tokens, "User:new\nline")
        tokens.renew("User:new\nline", token.hmac, -1).result(TIMEOUT_S)
        found = tokens.find(token.information.token_id)
        shown = repr((token, found)) + caplog.text

    assert found is not None
    for secret in (found.hmac_text, repr(token.hmac)[2:-1], "the cluster's"):
        assert secret not in shown
    assert "new\nline" not in caplog.text


def test_who_asks_while_too_many_wait_is_told_so_and_a_stopped_broker_refuses() -> None:
    worker, held = RegistryWorker(), threading.Event()
    first = worker.run(lambda: held.wait(TIMEOUT_S))
    others = [worker.run(lambda: 5) for _ in range(MOST_WAITING + 2)]
    late = others[-1]
    held.set()

    assert first.result(TIMEOUT_S) is True
    assert others[0].result(TIMEOUT_S) == 5
    assert refusal(late) is ErrorCode.REQUEST_TIMED_OUT
    worker.stop()
    assert refusal(worker.run(lambda: 5)) is ErrorCode.KAFKA_STORAGE_ERROR
