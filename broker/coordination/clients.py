"""Who sent a request, for groups."""

from typing import TYPE_CHECKING

from kavka.coordinator.group.group import Client

if TYPE_CHECKING:
    from kavka.broker.requests.handling import Context


def client_of(context: "Context") -> Client:
    """Who sent a request, as groups know their members' clients."""
    return Client(context.client_id or "", f"/{context.client_host}", context.api_version)
