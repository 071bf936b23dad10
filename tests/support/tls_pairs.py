"""Two ends of TLS in one process, joined by memory."""

from __future__ import annotations

import ssl


class End:
    """One side: its TLS, what it has received and not read, what it has written and nobody has taken."""

    def __init__(self, context: ssl.SSLContext, *, is_server: bool, host: str | None = None) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=is_server, server_hostname=host)
        self.is_done = False

    def step(self) -> None:
        """Go on with the handshake. Raises ssl.SSLError."""
        if not self.is_done:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                return
            self.is_done = True

    def read(self) -> bytes:
        """All that can be read now. Raises ssl.SSLError."""
        data = b""
        while True:
            try:
                piece = self.tls.read(1 << 16)
            except ssl.SSLWantReadError:
                return data
            if not piece:
                return data
            data += piece


def joined(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> tuple[End, End]:
    """(the server's end, the client's end) after the handshake. Raises ssl.SSLError of whoever refuses."""
    ends = End(server, is_server=True), End(client, is_server=False, host=host)
    for _ in range(10):
        for end, other in (ends, ends[::-1]):
            end.step()
            other.incoming.write(end.outgoing.read())
    for end in ends:
        # In TLS 1.3 the client learns by reading that its certificate was refused.
        end.read()
        assert end.is_done
    return ends
