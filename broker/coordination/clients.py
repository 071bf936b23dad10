"""Who sent a request, for groups."""

from typing import TYPE_CHECKING

from kavka.broker.security.acl import Operation, ResourceType
from kavka.coordinator.group.group import Client, Viewer

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context


def subscriber_of(context: "Context") -> Client:
    """As `client_of`, with the right to be told of topics."""
    client = client_of(context)
    if context.session.authorizer is None:
        return client

    def may_describe(name: str) -> bool:
        return context.allowed_names(Operation.DESCRIBE, ResourceType.TOPIC)(name)

    return client._replace(viewer=Viewer((context.principal, context.client_host), may_describe))


def client_of(context: "Context") -> Client:
    """Who sent a request, as groups know their members' clients."""
    return Client(context.client_id or "", f"/{context.client_host}", context.api_version)
