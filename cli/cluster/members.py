"""The brokers of a cluster: where they are, what they serve."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kavka.cli.failing import Failure
from kavka.cli.showing import Value
from kavka.client.api_errors import UnsupportedVersionError
from kavka.protocol.api import VERSIONS, ApiKey

if TYPE_CHECKING:
    from kavka.client import Admin
    from kavka.client.admin import ClusterDescription, VersionSpan

COLUMNS: Final = ("id", "host", "port", "rack", "is_controller", "is_fenced")
VERSION_COLUMNS: Final = ("broker", "api_key", "api", "oldest", "newest", "usable")


def cluster_with_fenced(admin: "Admin") -> "ClusterDescription":
    """The cluster, with brokers that are registered but not in service where that can be asked (KIP-1073)."""
    try:
        return admin.describe_cluster(include_fenced_brokers=True)
    except UnsupportedVersionError:
        return admin.describe_cluster()


def check_brokers(admin: "Admin", broker_ids: Iterable[int]) -> None:
    """Raises Failure for a broker that there is not: else it would be waited for."""
    there = sorted(node.id for node in admin.describe_cluster().nodes)
    gone = sorted(set(broker_ids) - set(there))
    if gone:
        raise Failure(
            f"there is no broker {', '.join(map(str, gone))}", f"those there are: {', '.join(map(str, there))}"
        )


def member_rows(admin: "Admin") -> list[Sequence[Value]]:
    """A row for each broker."""
    cluster = cluster_with_fenced(admin)
    controller_id = cluster.controller.id if cluster.controller is not None else None
    return [
        (node.id, node.host, node.port, node.rack, node.id == controller_id, node.id in cluster.fenced)
        for node in sorted(cluster.nodes, key=lambda node: node.id)
    ]


def version_rows(admin: "Admin", broker_ids: Sequence[int] | None) -> list[Sequence[Value]]:
    """A row for each API of each broker; `usable` is the newest version that this client speaks too."""
    if broker_ids is not None:
        check_brokers(admin, broker_ids)
    rows: list[Sequence[Value]] = []
    for broker_id, served in sorted(admin.describe_api_versions(broker_ids).items()):
        for key, span in sorted(served.items()):
            rows.append((broker_id, key, _api_name(key), span.oldest, span.newest, _usable(key, span)))
    return rows


def _api_name(key: int) -> str | None:
    try:
        return ApiKey(key).title
    except ValueError:
        return None


def _usable(key: int, span: "VersionSpan") -> int | None:
    spoken = VERSIONS.get(key)
    if spoken is None:
        return None
    newest = min(spoken.newest, span.newest)
    return newest if newest >= max(spoken.oldest, span.oldest) else None
