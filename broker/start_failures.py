"""What keeps a broker from starting, in words for its operator: one line, with the way out where there is one."""

import errno
from collections.abc import Collection
from typing import Final

from kavka.broker.metadata.identity import IdentityError
from kavka.cluster.registry.base import RegistryError
from kavka.cluster.znodes.cluster_id import ClusterId
from kavka.cluster.znodes.config import EntityConfig
from kavka.cluster.znodes.json_data import ZnodeError
from kavka.config.errors import ConfigError, SettingRefusedError
from kavka.config.topic_config import UNREADABLE
from kavka.protocol.errors import BrokerError
from kavka.storage.adoption import AdoptionError
from kavka.storage.log_directories import NoLogDirectoryError
from kavka.storage.log_directory import DirectoryInUseError
from kavka.storage.log_loading import DuplicatePartitionError
from kavka.storage.meta_properties import MetaPropertiesError

EXPECTED_FAILURES: Final = (
    IdentityError,
    AdoptionError,
    BrokerError,
    ConfigError,
    DirectoryInUseError,
    DuplicatePartitionError,
    MetaPropertiesError,
    NoLogDirectoryError,
    OSError,
    RegistryError,
    ZnodeError,
)
"""What keeps a broker from starting and can be put right by its operator."""


def reason_of(failure: BaseException, kept: Collection[str] = ()) -> str:
    """The line. `kept` are the names of the settings that were changed while the broker ran before."""
    if isinstance(failure, ZnodeError) and failure.path.startswith(EntityConfig.path("brokers/")):
        return f"{failure} (kavka storage settings --delete '{UNREADABLE}' takes back what cannot be read)"
    if isinstance(failure, ZnodeError) and failure.path == ClusterId.PATH:
        right = ClusterId.encode("...").decode()
        return f"{failure} (what belongs there is {right} with the cluster.id of the brokers' meta.properties)"
    if not isinstance(failure, OSError) or not failure.strerror:
        return str(failure)
    reason = failure.strerror if failure.filename is None else f"{failure.filename}: {failure.strerror}"
    if isinstance(failure, SettingRefusedError) and failure.name in kept:
        way_out = f"kavka storage settings --delete {failure.name} takes that back"
        return f"{reason} ({failure.name} was changed while the broker ran: {way_out})"
    return reason


def refused_listening(failure: OSError, metrics_port: int | None, listener_ports: Collection[int]) -> OSError:
    """The same failure, with the part of the metrics' port in it: two sockets may have one, but not both listen."""
    if failure.errno != errno.EADDRINUSE or metrics_port not in listener_ports:
        return failure
    return OSError(failure.errno, f"{failure.strerror} by this broker's own metrics.port={metrics_port}")
