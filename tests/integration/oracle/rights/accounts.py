"""Users: one for each set of rights that a grant in the table gives."""

import socket
from collections.abc import Iterable, Mapping
from typing import Final

from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kavka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kavka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kavka.protocol.schema import Request
from tests.integration.oracle.rights.table import Acl, Grant, Row, all_grants
from tests.support.wire import Wire

SUPERUSER: Final = "root"
PASSWORD: Final = "a-password-of-tests"
LISTENER: Final = "sasl_plaintext"
ACLS_AT_ONCE: Final = 500


class UserWire(Wire):
    """A connection that authenticates by PLAIN when it is made, and whenever it is made again."""

    def __init__(self, host: str, port: int, user: str) -> None:
        self._user = user
        super().__init__(host, port)

    @property
    def socket(self) -> socket.socket:
        is_new = self._socket is None
        connection = super().socket
        if is_new:
            self._authenticate()
        return connection

    def send(self, request: Request, version: int) -> int:
        # Made first, because that takes correlation ids.
        _ = self.socket
        return super().send(request, version)

    def _authenticate(self) -> None:
        assert self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        token = f"\0{self._user}\0{PASSWORD}".encode()
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == 0, answer


class Accounts:
    """Who has which rights."""

    def __init__(self, rows: Iterable[Row]) -> None:
        granted = dict.fromkeys(grant.acls for row in rows for grant in all_grants(row) if not grant.is_superuser)
        self._users: Mapping[frozenset[Acl], str] = {acls: f"u{number}" for number, acls in enumerate(granted)}

    def user(self, grant: Grant) -> str:
        return SUPERUSER if grant.is_superuser else self._users[grant.acls]

    def settings(self) -> dict[str, str]:
        """A broker's, beside its listeners."""
        users = " ".join(f'user_{user}="{PASSWORD}"' for user in (SUPERUSER, *self._users.values()))
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": f"User:ANONYMOUS;User:{SUPERUSER}",
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LISTENER}.plain.sasl.jaas.config": f"{module} required {users};",
        }

    def grant_all(self, admin: Wire) -> None:
        """Have the broker know all rights. It has when this returns."""
        creations = [
            AclCreation(
                resource_type=acl.type,
                resource_name=acl.name,
                resource_pattern_type=acl.pattern_type,
                principal=f"User:{user}",
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acls, user in self._users.items()
            for acl in sorted(acls)
        ]
        for start in range(0, len(creations), ACLS_AT_ONCE):
            answer = admin.ask(CreateAclsRequest(creations=creations[start : start + ACLS_AT_ONCE]), 3)
            assert not any(each.error_code for each in answer.results), answer.results
