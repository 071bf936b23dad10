"""What came of something that was to be done on the controller's thread, as its asker is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from kavka.cluster.controller.store import ControllerMovedError
from kavka.cluster.registry.base import OutOfReachError, RegistryError
from kavka.protocol.errors import BrokerError, ErrorCode

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class UnforeseenError(BrokerError):
    """What nobody has foreseen: a term in the middle of something may be out of step with the tree."""


def answer_of(work: Callable[[], _T]) -> _T:
    """Do it; what fails comes out as a BrokerError, an UnforeseenError where nobody meant it, or a
    ControllerMovedError.
    """
    try:
        return work()
    except (BrokerError, ControllerMovedError):
        raise
    except RegistryError as error:
        level = logging.WARNING if isinstance(error, OutOfReachError) else logging.ERROR
        log.log(level, "the controller cannot go on: %s", error)
        raise UnforeseenError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
    except Exception as error:
        # The thread has to outlive any mistake.
        log.exception("the controller failed")
        raise UnforeseenError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error
