"""What may stand between a broker's plain parts and its clients: nothing, unless faults can be asked for.

Their code is imported then, and only then.
"""

from typing import TYPE_CHECKING, Protocol

from kavka.broker.requests.session import Session

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.requests.handling import Handler
    from kavka.broker.services import Services
    from kavka.config.broker_config import BrokerConfig
    from kavka.storage.files import Files


class Hooks(Protocol):
    """Threads: called by who starts and stops the broker; what they give is used by any."""

    @property
    def files(self) -> "Files":
        """What the broker stores its logs with."""

    @property
    def session_kind(self) -> "type[Session]":
        """What sessions connections have."""

    def handlers(self, handlers: "dict[int, Handler]") -> "dict[int, Handler]":
        """What runs the requests."""

    def started(self) -> None:
        """The broker serves. Raises OSError."""

    def stopping(self) -> None:
        """The broker begins to stop."""


class NoHooks:
    """Nothing: everything is as it is."""

    session_kind = Session

    def __init__(self, files: "Files") -> None:
        self.files = files

    def handlers(self, handlers: "dict[int, Handler]") -> "dict[int, Handler]":
        """See Hooks."""
        return handlers

    def started(self) -> None:
        """See Hooks."""

    def stopping(self) -> None:
        """See Hooks."""


def hooks_of(config: "BrokerConfig", faults: "FaultControl | None", services: "Services", files: "Files") -> Hooks:
    """The hooks of a broker with these settings; `faults` if its owner asks for them, who then has the door too."""
    if faults is not None:
        return faults.hook(services, files)
    if not config.kavka_faults_enable:
        return NoHooks(files)
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.faults.door import FaultDoor

    control = FaultControl()
    return control.hook(services, files, FaultDoor(control, config.kavka_faults_port))
