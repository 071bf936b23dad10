"""What a registry said, kept by id, and waiting for what it cannot say yet."""

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from threading import Event
from typing import Final, TypeVar

from kavka.pipeline.schemas.errors import SchemaMissingError, SchemaUnavailableError, SchemaUnusableError
from kavka.pipeline.schemas.registry.schema import RegisteredSchema, Registry, WholeSchema

logger = logging.getLogger(__name__)

_MAX_NEEDED: Final = 200
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_UNKNOWN_FOR_S: Final = 60.0
_Result = TypeVar("_Result")


class Waits:
    """How often and how long a stage has waited for its registry. One thread counts, any may read."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.reason: str | None = None
        """What is waited for now; None while nothing is."""


class Catalogue:
    """Schemas by id, each asked for once. One thread's; `stop` may be called by any, and ends a wait."""

    def __init__(
        self,
        registry: Registry,
        wait: Callable[[float], bool] | None = None,
        waiting: Callable[[str], None] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wait` lets seconds go by, and says whether it was stopped: for tests. `waiting` is told each time why."""
        self._registry: Final = registry
        self._stopped: Final = Event()
        self._wait: Final = wait or self._stopped.wait
        self._waiting: Final = waiting
        self._now_s: Final = now_s
        self._known: Final[dict[int, WholeSchema]] = {}
        self._versions: Final[dict[tuple[str, int], RegisteredSchema]] = {}
        self.refused: Final[dict[int, str]] = {}
        """Ids whose values are bad, and why: their schemas are unusable."""
        self.unknown: Final[dict[int, str]] = {}
        """Ids that the registry did not have when somebody asked who does not wait for them, and what to say."""
        self._unknown_since_s: Final[dict[int, float]] = {}
        self.waits: Final = Waits()

    @property
    def known(self) -> dict[int, WholeSchema]:
        """A copy of what is known, by id."""
        return dict(self._known)

    def stop(self) -> None:
        """Who waits raises SchemaUnavailableError at once, and so does whoever comes to wait later."""
        self._stopped.set()

    def load(self, schema_ids: Iterable[int], *, wait_for_unknown: bool = True) -> None:
        """Asks for ids, and waits until the registry has answered. An id that it does not have is waited for as well.

        Unless `wait_for_unknown` is False: then it is noted in `unknown`. Raises SchemaUnavailableError once stopped.
        """
        for schema_id in schema_ids:
            if schema_id in self._known or schema_id in self.refused:
                continue
            if schema_id in self.unknown and not wait_for_unknown:
                continue
            try:
                self._patiently(partial(self._ask_id, schema_id), wait_for_unknown)
            except SchemaMissingError:
                self.unknown[schema_id] = f"the registry has no schema with id {schema_id}"
                self._unknown_since_s[schema_id] = self._now_s()
            except SchemaUnusableError as error:
                self.refused[schema_id] = str(error)
            else:
                self.unknown.pop(schema_id, None)

    def forget_unknown(self) -> None:
        """Before a batch: what the registry did not have a minute ago is asked for anew, as dead letters come again."""
        limit_s = self._now_s() - _UNKNOWN_FOR_S
        for schema_id in [each for each, since_s in self._unknown_since_s.items() if since_s <= limit_s]:
            del self._unknown_since_s[schema_id]
            self.unknown.pop(schema_id, None)

    def version(self, subject: str, version: int | str) -> WholeSchema:
        """A subject's version; `latest` is asked for anew each time. Waits as `load` does."""
        return self._patiently(lambda: self._whole(self._registry.by_version(subject, version)), True)

    def _ask_id(self, schema_id: int) -> WholeSchema:
        return self._whole(self._registry.by_id(schema_id))

    def _patiently(self, ask: Callable[[], _Result], wait_for_missing: bool) -> _Result:
        pause = _FIRST_WAIT_S
        while True:
            try:
                result = ask()
            except SchemaUnavailableError as error:
                if isinstance(error, SchemaMissingError) and not wait_for_missing:
                    raise
                logger.warning("The batch waits for a schema: %s. Asking again in %.1f s.", error, pause)
                self.waits.reason = str(error)
                self.waits.count += 1
                self.waits.seconds += pause
                if self._waiting is not None:
                    self._waiting(str(error))
                if self._wait(pause):
                    raise SchemaUnavailableError(f"stopped while waiting for a schema: {error}") from error
                pause = min(2 * pause, _LONGEST_WAIT_S)
                continue
            if self.waits.reason is not None:
                logger.info("The schema is there, the batch goes on.")
                self.waits.reason = None
            return result

    def _whole(self, schema: RegisteredSchema) -> WholeSchema:
        """With what it refers to. A registered schema never changes, so that each is asked for once."""
        if schema.id not in self._known:
            needed: dict[str, str] = {}
            self._gather(schema, needed, ())
            self._known[schema.id] = WholeSchema(schema.id, schema.kind, schema.text, tuple(needed.items()))
        return self._known[schema.id]

    def _gather(self, schema: RegisteredSchema, needed: dict[str, str], path: tuple[str, ...]) -> None:
        for reference in schema.references:
            if reference.name in needed:
                continue
            if reference.name in path or len(needed) + len(path) >= _MAX_NEEDED:
                raise SchemaUnusableError(f"schema {schema.id} refers to {reference.name} in a circle, or to too many")
            place = (reference.subject, reference.version)
            if place not in self._versions:
                self._versions[place] = self._registry.by_version(*place)
            found = self._versions[place]
            self._gather(found, needed, (*path, reference.name))
            needed[reference.name] = found.text
