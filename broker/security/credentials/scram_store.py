"""Users' SCRAM credentials as this broker knows them: read from `/config/users` for its first SASL listener."""

import logging
import threading
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from kavka.cluster.entity_configs import read_configs
from kavka.cluster.znodes.scram_credential import MECHANISMS, USERS, Look, look_of, parse_credential, user_of_node

if TYPE_CHECKING:
    from kavka.cluster.registry.base import Registry
    from kavka.protocol.sasl.scram import ScramCredential, ScramMechanism

log = logging.getLogger(__name__)

_NONE: Final[Mapping[str, str]] = {}
_MOST_LOOKED_AT: Final = 1000


class ScramStore:
    """Who has which credential.

    Threads: any. `_lock` is held over the one reading of the registry, so that no change that is heard of meanwhile is
    lost; after it `find` takes no lock. `_users` has the stored texts, each replaced whole; `_looks` what was last seen
    of them, for each mechanism, replaced whole by an empty one with each user that changes.
    """

    def __init__(self, registry: "Registry") -> None:
        self._registry: Final = registry
        self._lock = threading.Lock()
        self._users: dict[str, Mapping[str, str]] = {}
        self._looks: dict[str, Sequence[Look]] = {}
        self._is_loaded = False

    def load(self) -> None:
        """Read all users, unless that was done. Raises RegistryError."""
        with self._lock:
            if self._is_loaded:
                return
            for name, config in read_configs(self._registry, USERS).items():
                self._take_in(name, config)
            self._is_loaded = True

    def node_changed(self, name: str, config: Mapping[str, str]) -> None:
        """What is set for `users/NAME` is now `config`; that of a user's clients is none of this one's business."""
        with self._lock:
            if self._is_loaded:
                self._take_in(name, config)

    def find(self, mechanism: "ScramMechanism", user: str) -> "ScramCredential | None":
        """The credential of a user for a mechanism; None without one, or one that can be read. Nobody before `load`."""
        text = self._users.get(user, _NONE).get(mechanism.value)
        if text is None:
            return None
        try:
            return parse_credential(text)
        except ValueError as reason:
            log.error("a credential cannot be read user=%r mechanism=%s reason=%s", user, mechanism.value, reason)
            return None

    def looks(self, mechanism: "ScramMechanism") -> Sequence[Look]:
        """Those of users' credentials, sorted; of many users those of the first ones."""
        known = self._looks
        looks = known.get(mechanism.value)
        if looks is None:
            with self._lock:
                some = list(islice(self._users.values(), _MOST_LOOKED_AT))
            seen = [look_of(each[mechanism.value]) for each in some if mechanism.value in each]
            looks = known[mechanism.value] = sorted(look for look in seen if look is not None)
        return looks

    def _take_in(self, name: str, config: Mapping[str, str]) -> None:
        user = user_of_node(name)
        if user is None:
            return
        texts = {each: config[each] for each in MECHANISMS.values() if each in config}
        if texts:
            self._users[user] = texts
        else:
            self._users.pop(user, None)
        self._looks = {}
