"""Getting a thread out of its wait for sockets."""

import socket
import threading


class Waker:
    """A socket that becomes readable when any thread calls `wake`.

    Threads: `wake` by any, the rest by the one that waits. `_lock` guards `_is_woken` and keeps `close` from coming
    between the question whether it is open and the byte: descriptors are used again.
    """

    __slots__ = ("_is_closed", "_is_woken", "_lock", "_sender", "receiver")

    def __init__(self) -> None:
        """Raises OSError."""
        self.receiver, self._sender = socket.socketpair()
        self.receiver.setblocking(False)
        self._sender.setblocking(False)
        self._lock = threading.Lock()
        self._is_woken = False
        self._is_closed = False

    def wake(self) -> None:
        """Make it readable; once more is the same. Ignored after `close`."""
        with self._lock:
            if not self._is_woken and not self._is_closed:
                self._is_woken = True
                self._sender.send(b"\0")

    def rest(self) -> None:
        """It was seen to be readable: the next `wake` counts again. What is to be looked at is looked at after this."""
        with self._lock:
            if self._is_woken:
                self._is_woken = False
                self.receiver.recv(1)

    def close(self) -> None:
        """Close both ends."""
        with self._lock:
            self._is_closed = True
            self.receiver.close()
            self._sender.close()

    def let_go(self) -> None:
        """In a forked child: close this process's copies. The lock may be held by a thread that is not there."""
        self._lock = threading.Lock()
        self.close()
