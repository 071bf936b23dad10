"""The authorizer that the settings ask for, with the ACLs that the tree has."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kavka.broker.security.authorizer.acl_authorizer import AclAuthorizer
from kavka.broker.security.authorizer.kept_acls import KeptAcls
from kavka.cluster.acl_changes import AclChanges
from kavka.config.authorizer import allows_unmentioned, super_users

if TYPE_CHECKING:
    from kavka.cluster.registry.base import Registry
    from kavka.config.broker_config import BrokerConfig


class OpenAuthorizer:
    """What decides, what is asked for ACLs, and the thread that both hang on."""

    def __init__(self, decides: AclAuthorizer, changes: AclChanges) -> None:
        self.decides: Final = decides
        self.acls: Final = KeptAcls(decides, changes)
        self._changes = changes

    def close(self) -> None:
        """Follow no more changes, and tell what was counted. What counts stays."""
        self._changes.stop()
        self.decides.audit.close()


def open_authorizer(
    config: "BrokerConfig",
    registry: "Registry",
    on_changed: Callable[[], None],
    now_ms: Callable[[], int],
    on_death: Callable[[BaseException], None],
) -> OpenAuthorizer:
    """Load the ACLs. Raises RegistryError: who cannot read them must not decide; ConfigError for super users."""
    decides = AclAuthorizer(super_users(config), on_changed, allows_unmentioned=allows_unmentioned(config))
    changes = AclChanges(registry, decides.swap, now_ms, on_death)
    changes.start()
    return OpenAuthorizer(decides, changes)
