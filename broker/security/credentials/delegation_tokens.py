"""Delegation tokens (KIP-48, KIP-373): made, renewed and ended for their owners, and known to every broker.

A token's secret is the HMAC of its id, which each broker works out with the cluster's secret key; the keys that SCRAM
needs of it are made, and remembered, where somebody logs in. The rules are those of Kafka's DelegationTokenManager.
"""

import hmac
import logging
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kavka.broker.security.sasl.ports import Token
from kavka.cluster.notices import Notices
from kavka.cluster.registry.base import (
    BadVersionError,
    Create,
    Delete,
    InvalidNodeError,
    NoNodeError,
    RegistryError,
    SessionEvent,
    SetData,
    WatchEvent,
    children_or_none,
    create_paths,
    get_readable,
)
from kavka.cluster.topic_ids import new_topic_id
from kavka.cluster.znodes.delegation_token import (
    MOST_RENEWERS,
    TOKEN_CHANGE_PREFIX,
    TOKEN_CHANGES_PATH,
    TOKENS_PATH,
    DelegationTokenNode,
    TokenInformation,
    is_token_id,
    token_of_notice,
)
from kavka.cluster.znodes.json_data import INT64_MAX, ZnodeError
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.protocol.schema import uuid_to_text

if TYPE_CHECKING:
    from kavka.broker.security.credentials.registry_worker import RegistryWorker
    from kavka.cluster.promise import Promise
    from kavka.cluster.registry.base import Registry
    from kavka.config.broker_config import BrokerConfig

log = logging.getLogger(__name__)


class KnownToken(NamedTuple):
    """A token with its secret."""

    information: TokenInformation
    hmac: bytes

    def __repr__(self) -> str:
        return f"KnownToken({self.information})"


class DelegationTokens:
    """The cluster's tokens as this broker knows them, and changes of them.

    Threads: any. `_tokens` and `_by_hmac` are written under `_lock`, and read without it; the registry is asked on the
    worker's thread alone, but for `start`. `_notices` and `_sessions_read` are its own, `_sessions` the registry's.
    """

    def __init__(
        self,
        registry: "Registry",
        secret_key: str,
        config: "Callable[[], BrokerConfig]",
        now_ms: Callable[[], int],
        worker: "RegistryWorker",
    ) -> None:
        self._registry = registry
        self._secret_key: Final = secret_key.encode()
        self._config = config
        self._now_ms = now_ms
        self._worker = worker
        self._lock = threading.Lock()
        self._tokens: dict[str, KnownToken] = {}
        self._by_hmac: dict[bytes, str] = {}
        self._notices = Notices(registry, [TOKEN_CHANGES_PATH], now_ms)
        self._sessions = self._sessions_read = 0

    def start(self) -> None:
        """Know all tokens there are, and hear of changes from here on. Raises RegistryError."""
        create_paths(self._registry, [TOKENS_PATH, TOKEN_CHANGES_PATH])
        self._registry.on_session_event(self._on_session_event)
        self._notices.begin(self._on_watch)
        self._read_all()

    def find(self, token_id: str) -> Token | None:
        """For a login. None for a token that has expired, too."""
        known = self._tokens.get(token_id)
        if known is None or known.information.is_expired(self._now_ms()):
            return None
        information = known.information
        return Token(information.owner, information.expiry_timestamp_ms, b64encode(known.hmac).decode())

    def tokens(self) -> list[KnownToken]:
        """All that this broker knows of."""
        return list(self._tokens.copy().values())

    def create(
        self, owner: str, requester: str, renewers: tuple[str, ...], max_lifetime_ms: int
    ) -> "Promise[KnownToken]":
        """A new token, which the registry has. `max_lifetime_ms` below 1: as long as it may be.

        INVALID_REQUEST: too many renewers.
        """
        return self._worker.run(lambda: self._create(owner, requester, renewers, max_lifetime_ms))

    def renew(self, principal: str, token_hmac: bytes, period_ms: int) -> "Promise[int]":
        """When it expires now. `period_ms` below 0: `delegation.token.expiry.time.ms`.

        DELEGATION_TOKEN_NOT_FOUND, DELEGATION_TOKEN_OWNER_MISMATCH: neither owner nor renewer;
        DELEGATION_TOKEN_EXPIRED.
        """
        period = self._config().delegation_token_expiry_time_ms if period_ms < 0 else period_ms
        return self._worker.run(lambda: self._let_expire(principal, token_hmac, period))

    def expire(self, principal: str, token_hmac: bytes, period_ms: int) -> "Promise[int]":
        """When it expires now; with `period_ms` below 0 at once. Refused as `renew`, but at once also if expired."""
        if period_ms < 0:
            return self._worker.run(lambda: self._end(principal, token_hmac))
        return self._worker.run(lambda: self._let_expire(principal, token_hmac, period_ms))

    def remove_expired(self) -> None:
        """Have those removed that nobody can use any more. For the controller; returns at once."""
        self._worker.run(self._remove_expired).watch(_log_failure)

    # On the worker's thread

    def _create(self, owner: str, requester: str, renewers: tuple[str, ...], max_lifetime_ms: int) -> KnownToken:
        config, now_ms = self._config(), self._now_ms()
        if len(renewers) > MOST_RENEWERS:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{len(renewers)} renewers")
        longest_ms = config.delegation_token_max_lifetime_ms
        lifetime_ms = longest_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, longest_ms)
        max_timestamp_ms = min(now_ms + lifetime_ms, INT64_MAX)
        token = TokenInformation(
            uuid_to_text(new_topic_id()),
            owner,
            requester,
            renewers,
            now_ms,
            max_timestamp_ms,
            min(max_timestamp_ms, now_ms + config.delegation_token_expiry_time_ms),
        )
        path = DelegationTokenNode.path(token.token_id)
        try:
            self._write(Create(path, DelegationTokenNode.encode(token)), token.token_id)
        except InvalidNodeError:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "The renewers are more than a node can hold.") from None
        log.info("delegation token created token_id=%s owner=%r", token.token_id, owner)
        return self._take_in(token)

    def _let_expire(self, principal: str, token_hmac: bytes, period_ms: int) -> int:
        while True:
            token, version = self._own(principal, token_hmac)
            now_ms = self._now_ms()
            if token.is_expired(now_ms):
                raise BrokerError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
            changed = token._replace(expiry_timestamp_ms=min(token.max_timestamp_ms, now_ms + period_ms))
            path = DelegationTokenNode.path(token.token_id)
            try:
                self._write(SetData(path, DelegationTokenNode.encode(changed), version), token.token_id)
            except (BadVersionError, NoNodeError):
                continue
            log.info("delegation token's expiry changed token_id=%s owner=%r", token.token_id, token.owner)
            self._take_in(changed)
            return changed.expiry_timestamp_ms

    def _end(self, principal: str, token_hmac: bytes) -> int:
        token, _ = self._own(principal, token_hmac)
        self._remove(token)
        return self._now_ms()

    def _own(self, principal: str, token_hmac: bytes) -> tuple[TokenInformation, int]:
        """The token as it is stored, and its version, which this principal may renew. Raises BrokerError."""
        token_id = self._by_hmac.get(token_hmac)
        found = None if token_id is None else self._registry.get_many([DelegationTokenNode.path(token_id)])[0]
        if token_id is None or found is None:
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        try:
            token = DelegationTokenNode.decode(token_id, found[0])
        except ZnodeError as error:
            log.error("a delegation token cannot be read: %s", error)
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND) from None
        if not token.is_owned_or_renewed_by(principal):
            raise BrokerError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        return token, found[1].version

    def _remove_expired(self) -> None:
        now_ms = self._now_ms()
        for known in self.tokens():
            # What is stored counts: another broker may have renewed it a moment ago.
            if not known.information.is_expired(now_ms):
                continue
            token_id = known.information.token_id
            found = self._registry.get_many([DelegationTokenNode.path(token_id)])[0]
            token = None if found is None else _decoded(token_id, found[0])
            if token is None:
                self._forget(token_id)
            elif token.is_expired(now_ms):
                log.info("delegation token has expired token_id=%s owner=%r", token_id, token.owner)
                self._remove(token, -1 if found is None else found[1].version)
            else:
                self._take_in(token)

    def _remove(self, token: TokenInformation, version: int = -1) -> None:
        try:
            self._write(Delete(DelegationTokenNode.path(token.token_id), version), token.token_id)
        except (NoNodeError, BadVersionError):
            # Removed, or renewed, by another broker, of which its notice tells.
            return
        self._forget(token.token_id)
        log.info("delegation token removed token_id=%s owner=%r", token.token_id, token.owner)

    def _write(self, operation: Create | SetData | Delete, token_id: str) -> None:
        """With the notice of it. Raises NoNodeError where the token is gone, and other RegistryErrors."""
        while True:
            try:
                self._registry.multi([operation, Create(TOKEN_CHANGE_PREFIX, token_id.encode(), sequential=True)])
            except NoNodeError as error:
                if error.path == operation.path and not isinstance(operation, Create):
                    raise
                # Somebody has cleared what it hangs on.
                create_paths(self._registry, [TOKENS_PATH, TOKEN_CHANGES_PATH])
            else:
                return

    def _on_watch(self, event: WatchEvent) -> None:
        self._worker.look(self._look)

    def _on_session_event(self, event: SessionEvent) -> None:
        if event is SessionEvent.ESTABLISHED:
            # The watch went with the session before, and notices may have been purged meanwhile.
            self._sessions += 1
            self._worker.look(self._look)

    def _look(self) -> bool:
        """Take in what has changed, and hear of what comes next. False: to be tried again."""
        try:
            sessions = self._sessions
            changed = _told_of(self._notices.new(self._on_watch))
            if changed is None or self._notices.has_missed or sessions != self._sessions_read:
                self._read_all()
                self._sessions_read = sessions
            else:
                self._read(changed)
            self._notices.done()
        except RegistryError as error:
            log.warning("changes of delegation tokens are not heard: %s", error)
            return False
        return True

    def _read_all(self) -> None:
        names = [name for name in children_or_none(self._registry, TOKENS_PATH) if is_token_id(name)]
        for gone in self._tokens.keys() - set(names):
            self._forget(gone)
        self._read(names)

    def _read(self, token_ids: list[str]) -> None:
        found = get_readable(self._registry, [DelegationTokenNode.path(each) for each in token_ids])
        for token_id, node in zip(token_ids, found, strict=True):
            token = None if node is None else _decoded(token_id, node[0])
            if token is None:
                self._forget(token_id)
            else:
                self._take_in(token)

    def _take_in(self, token: TokenInformation) -> KnownToken:
        known = KnownToken(token, hmac.digest(self._secret_key, token.token_id.encode(), "sha512"))
        with self._lock:
            self._tokens[token.token_id] = known
            self._by_hmac[known.hmac] = token.token_id
        return known

    def _forget(self, token_id: str) -> None:
        with self._lock:
            known = self._tokens.pop(token_id, None)
            if known is not None:
                self._by_hmac.pop(known.hmac, None)


def _told_of(notices: Mapping[str, bytes]) -> list[str] | None:
    """The tokens that have changed. None: nobody knows which, as a notice is in no form that is known."""
    changed: dict[str, None] = {}
    is_whole = True
    for path, data in notices.items():
        try:
            changed[token_of_notice(path.rpartition("/")[2], data)] = None
        except ZnodeError as error:
            log.error("all delegation tokens are read: %s", error)
            is_whole = False
    return list(changed) if is_whole else None


def _decoded(token_id: str, data: bytes) -> TokenInformation | None:
    try:
        return DelegationTokenNode.decode(token_id, data)
    except ZnodeError as error:
        log.error("a delegation token is left out: %s", error)
        return None


def _log_failure(_: None, error: BaseException | None) -> None:
    if error is not None:
        log.warning("expired delegation tokens are not removed yet: %s", error)
