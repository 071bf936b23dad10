"""Topics to a lake and back, by Spark: a data source, and jobs that archive, aggregate, replay and audit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.pipeline.sending.marked_producer import Transactions as Transactions
    from kavka.pipeline.sending.replaying import Replay as Replay
    from kavka.pipeline.sending.replaying import backfill as backfill
    from kavka.pipeline.sending.replaying import replay as replay
    from kavka.pipeline.sending.writing import WriteOptions as WriteOptions
    from kavka.pipeline.sending.writing import Written as Written
    from kavka.pipeline.sending.writing import write as write

_LATER: Final = {
    "Replay": "kavka.pipeline.sending.replaying",
    "Transactions": "kavka.pipeline.sending.marked_producer",
    "WriteOptions": "kavka.pipeline.sending.writing",
    "Written": "kavka.pipeline.sending.writing",
    "backfill": "kavka.pipeline.sending.replaying",
    "replay": "kavka.pipeline.sending.replaying",
    "write": "kavka.pipeline.sending.writing",
}


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody wants it, as Spark comes with it."""
    place = _LATER.get(name)
    if place is None:
        raise AttributeError(f"module 'kavka.pipeline' has no attribute {name!r}")
    return getattr(import_module(place), name)
