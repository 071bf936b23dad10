"""Faults on demand over HTTP, for programs in any language.

    POST   /faults      one fault, as a JSON object (door_requests.py): what it is, with its id
    GET    /faults      all that were not cleared, with how often each has hit; /faults/ID one of them
    DELETE /faults      take all back; /faults/ID one of them

On 127.0.0.1 alone, and only with the token that the broker printed, as `Authorization: Bearer TOKEN`. A browser's page
cannot come in: requests with another Host, or with an Origin that is not this, are refused, and POST wants
`Content-Type: application/json`. A request is 8 KiB at most, head and body; errors are one line of JSON.
"""

import hmac
import json
import logging
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kavka.broker.faults.door_requests import ask_for
from kavka.broker.network.bounded_http import MAX_HEAD_BYTES, BoundedHandler, BoundedHttpServer

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.faults.fault import Fault

HOST: Final = "127.0.0.1"
WORKERS: Final = 4
TOKEN_BYTES: Final = 24
JSON: Final = "application/json"
PATH: Final = "/faults"
MOST_DIGITS: Final = 9
TOO_LONG: Final = "a request is 8 KiB at most"

log = logging.getLogger(__name__)


class FaultDoor:
    """Serves one control. `start` and `stop` once each, by its owner; `stop` joins its threads."""

    def __init__(self, control: "FaultControl", port: int = 0) -> None:
        self.control: Final = control
        self.token: Final = secrets.token_urlsafe(TOKEN_BYTES)
        self.port = port
        """Where it is served, once it is."""
        self._server: BoundedHttpServer | None = None

    @property
    def url(self) -> str:
        """Where faults are asked for."""
        return f"http://{HOST}:{self.port}{PATH}"

    def start(self) -> None:
        """Serve, and say in the log where, and with which token. Raises OSError where the port cannot be had."""
        server = BoundedHttpServer("kavka.faults", HOST, self.port, WORKERS, partial(_Handler, door=self))
        self.port = server.server_port
        server.start()
        self._server = server
        log.info("faults can be asked for url=%s token=%s", self.url, self.token)

    def stop(self) -> None:
        """Close all connections. Nothing happens where `start` failed."""
        if self._server is not None:
            self._server.stop()

    def hosts(self) -> set[str]:
        """What a request may say in Host."""
        return {f"{HOST}:{self.port}", f"localhost:{self.port}"}


class _RefusedError(Exception):
    """The answer is an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BoundedHandler):
    """One request to one door."""

    methods = "GET, POST and DELETE"

    def __init__(self, connection: Any, address: Any, server: Any, *, door: FaultDoor) -> None:
        self._door = door
        super().__init__(connection, address, server)

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        self._answered(self._get)

    def do_POST(self) -> None:  # noqa: N802 - the library's name
        self._answered(self._post)

    def do_DELETE(self) -> None:  # noqa: N802 - the library's name
        self._answered(self._delete)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also what the library refuses is said in JSON."""
        self.is_refused = True
        if code == 501:
            code, message = 405, f"only {self.methods} are served"
        if self.request_version == "HTTP/0.9":
            self.request_version = "HTTP/1.0"
        self.answer(code, JSON, _line({"error": message or self.responses.get(code, ("refused",))[0]}))

    def _answered(self, act: Any) -> None:
        try:
            self._check()
            status, value = act()
        except _RefusedError as refused:
            self.send_error(refused.status, str(refused))
        except ValueError as refused:
            self.send_error(400, str(refused))
        except RuntimeError as refused:
            self.send_error(409, str(refused))
        except TimeoutError as late:
            self.send_error(504, str(late))
        except OSError:
            # The client has gone.
            raise
        except Exception:
            log.exception("a fault could not be asked for")
            self.send_error(500, "it failed; the log says why")
        else:
            self.answer(status, JSON, _line(value))

    def _check(self) -> None:
        """Raises _RefusedError unless the request comes from a program on this machine that has the token."""
        hosts = self._door.hosts()
        if [each.lower() for each in self.headers.get_all("Host", [])] not in [[host] for host in hosts]:
            raise _RefusedError(403, "another Host than this door's")
        if any(each not in {f"http://{host}" for host in hosts} for each in self.headers.get_all("Origin", [])):
            raise _RefusedError(403, "another Origin than this door's")
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given, self._door.token.encode()):
            raise _RefusedError(401, "Authorization: Bearer TOKEN is needed, with the token that the broker printed")

    def _get(self) -> tuple[int, Any]:
        fault = self._named()
        faults = self._door.control.faults
        return 200, [each.described() for each in faults] if fault is None else fault.described()

    def _delete(self) -> tuple[int, Any]:
        fault = self._named()
        if fault is None:
            faults = self._door.control.faults
            self._door.control.clear()
            return 200, [each.described() for each in faults]
        fault.clear()
        return 200, fault.described()

    def _post(self) -> tuple[int, Any]:
        if self._named() is not None:
            raise _RefusedError(405, f"POST goes to {PATH}")
        if self.headers.get_content_type() != JSON:
            raise _RefusedError(415, f"Content-Type is to be {JSON}")
        return 201, ask_for(self._door.control, self._body()).described()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") is not None:
            raise _RefusedError(411, "Content-Length is needed")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RefusedError(411, "Content-Length is needed")
        if len(length) > MOST_DIGITS or int(length) > MAX_HEAD_BYTES:
            raise _RefusedError(413, TOO_LONG)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            # What is beyond the limit is not read.
            raise (
                _RefusedError(413, TOO_LONG) if self.head.left_bytes <= 0 else _RefusedError(400, "the body is cut off")
            )
        return body

    def _named(self) -> "Fault | None":
        """The fault that the path names; None for all of them. Raises _RefusedError."""
        path = self.path.partition("?")[0].rstrip("/")
        if path == PATH:
            return None
        fault_id = path.removeprefix(f"{PATH}/")
        found = next((each for each in self._door.control.faults if str(each.id) == fault_id), None)
        if found is None:
            raise _RefusedError(404, f"there is no such fault: {PATH} shows all that were not cleared")
        return found


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
