"""Spark's events of streaming queries, as calls."""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)


def listener(progressed: Callable[[str, dict[str, Any]], None], wake: Callable[[], None]) -> StreamingQueryListener:
    """Calls `progressed` with a query's id and Spark's progress, and `wake` after it and when a query ends.

    On a thread of Spark's, which must not be held up.
    """

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's names
            """Nothing to tell."""

        def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
            progressed(str(event.progress.id), json.loads(event.progress.json))
            wake()

        def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  # Spark's name
            """Nothing to tell."""

        def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
            wake()

    return Listener()
