"""Whether a broker answers: one ApiVersions v0 over a plain socket, with no client library and nothing of Kavka's."""

import socket
import struct

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 7, -1)
ANSWER_HEAD = struct.Struct(">iih")


def answers(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """True once a whole and error-free answer came; False if nobody listens or the answer is cut short."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(API_VERSIONS_V0)
            head = _receive(connection, ANSWER_HEAD.size)
            if len(head) < ANSWER_HEAD.size:
                return False
            size, correlation_id, error_code = ANSWER_HEAD.unpack(head)
            rest_bytes = size - (ANSWER_HEAD.size - 4)
            return (correlation_id, error_code) == (7, 0) and len(_receive(connection, rest_bytes)) == rest_bytes
    except OSError:
        return False


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            break
        received += piece
    return received
