"""What goes wrong with a test's broker, and what a test is told of it."""

import sys


class BrokerDiedError(AssertionError):
    """The broker ended by itself while the test ran; the message says why. A test fails by it."""


class LinuxRequiredError(RuntimeError):
    """A broker needs Linux's system calls; the rest of this package does not."""


def require_linux() -> None:
    """Raises LinuxRequiredError elsewhere, in one line."""
    if not sys.platform.startswith("linux"):
        raise LinuxRequiredError(
            f"kavka.testing starts a broker, which needs Linux, and this is {sys.platform}; "
            "run these tests in a Linux container, VM or WSL 2"
        )
