"""Whether a broker answers, and can be used: over a plain socket, with no client library and nothing of Kavka's."""

import socket
import struct

CORRELATION_ID = 7
API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, CORRELATION_ID, -1)
# From version 1 on an empty list of topics means none.
METADATA_V1 = struct.pack(">ihhihi", 14, 3, 1, CORRELATION_ID, -1, 0)


def answers(host: str, port: int, timeout_s: float = 20.0) -> bool:
    """True once a whole and error-free answer came; False if nobody listens or the answer is cut short."""
    answer = _ask(host, port, API_VERSIONS_V0, timeout_s)
    return answer is not None and answer[:2] == b"\0\0"


def is_ready(host: str, port: int, timeout_s: float = 20.0) -> bool:
    """True once its metadata have brokers, and a controller among them.

    Apache Kafka answers ApiVersions as soon as it listens, and Metadata without any broker until its registration has
    come back to it.
    """
    answer = _ask(host, port, METADATA_V1, timeout_s)
    if answer is None:
        return False
    (count,) = struct.unpack_from(">i", answer)
    position = 4
    brokers = set()
    for _ in range(count):
        broker_id, name_bytes = struct.unpack_from(">ih", answer, position)
        brokers.add(broker_id)
        position += 6 + name_bytes + 4
        (rack_bytes,) = struct.unpack_from(">h", answer, position)
        position += 2 + max(rack_bytes, 0)
    (controller_id,) = struct.unpack_from(">i", answer, position)
    return controller_id in brokers


def _ask(host: str, port: int, request: bytes, timeout_s: float) -> bytes | None:
    """What stands behind the correlation id of a whole answer; None without one."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(request)
            size = _receive(connection, 4)
            answer = _receive(connection, *struct.unpack(">i", size)) if len(size) == 4 else b""
    except OSError:
        return None
    whole = len(size) == 4 and len(answer) == struct.unpack(">i", size)[0]
    return answer[4:] if whole and answer[:4] == struct.pack(">i", CORRELATION_ID) else None


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        piece = connection.recv(count - len(received))
        if not piece:
            break
        received += piece
    return received
