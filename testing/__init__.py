"""A real broker inside tests, for any framework and any client: `Broker`, `Cluster`, and a pytest plugin.

    from kavka.testing import Broker

    with Broker() as broker:
        run_what_is_tested(broker.bootstrap_servers)
        assert broker.records("orders").values == [b"first"]

Nothing is loaded before it is asked for, so that the pytest plugin costs nothing where it is not used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kavka.testing.errors import require_linux

if TYPE_CHECKING:
    # What type checkers see in place of `__getattr__`'s Any.
    from kavka.testing.broker import Broker as Broker
    from kavka.testing.cluster import Cluster as Cluster
    from kavka.testing.errors import BrokerDiedError as BrokerDiedError
    from kavka.testing.errors import LinuxRequiredError as LinuxRequiredError
    from kavka.testing.rows import Row as Row

_HOMES: Final = {
    "Broker": "kavka.testing.broker",
    "BrokerDiedError": "kavka.testing.errors",
    "Cluster": "kavka.testing.cluster",
    "LinuxRequiredError": "kavka.testing.errors",
    "Row": "kavka.testing.rows",
}
_NEEDS_LINUX: Final = {"Broker", "Cluster"}


def __getattr__(name: str) -> Any:
    """Raises LinuxRequiredError for what starts brokers, where these cannot be."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _NEEDS_LINUX:
        require_linux()
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
