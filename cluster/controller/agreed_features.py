"""What the cluster has agreed on, followed by every broker, the controller or not (KIP-584)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kavka.cluster.features import FinalizedFeatures, read_features
from kavka.cluster.registry.base import Registry, Watch
from kavka.cluster.znodes.json_data import ZnodeError

log = logging.getLogger(__name__)


class AgreedFeatures:
    """Tells whoever goes by it.

    Threads: the controller's; any may read `is_heard`.
    """

    __slots__ = ("_features", "_on_features", "_registry", "_watch", "is_heard")

    def __init__(self, registry: Registry, watch: Watch, on_features: Callable[[FinalizedFeatures], object]) -> None:
        """`watch` hears of changes, and has `look` called."""
        self._registry = registry
        self._watch = watch
        self._on_features = on_features
        self._features: FinalizedFeatures | None = None
        self.is_heard = False
        """Whether the next change is. Not before the first look, nor after one that failed, nor in another session."""

    def look(self) -> None:
        """Go by what is agreed on now. Raises RegistryError: then it has to be called again."""
        self.is_heard = False
        try:
            features = read_features(self._registry, self._watch)
        except ZnodeError as error:
            log.error("what was agreed on before stays: %s", error)
        else:
            if features != self._features:
                self._features = features
                self._on_features(features)
        self.is_heard = True
