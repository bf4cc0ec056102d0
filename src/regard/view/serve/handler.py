"""HTTP: one connection, request after request, each checked, answered in bytes or refused in JSON."""

import io
import json
import select
import socket
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from ...errors import RegardError
from .guard import LARGEST_QUERY, headers_of, require_ours, require_room
from .refusal import Gone, Refused

if TYPE_CHECKING:
    from .server import Server

__all__ = ["Handler"]

PATIENCE = 30.0  # seconds in which a request has to arrive, and an answer to be taken
LARGEST_DRAINED = 2**22  # bytes of a body that nobody wants, read so that its sender hears why


class Arriving(io.RawIOBase):
    """The bytes of a connection, as long as they come in time: a client that sends one now and then is let go too."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.wait()

    def wait(self, seconds: float | None = None) -> None:
        """From now on, so many seconds for all that is read."""
        self.until = time.monotonic() + (PATIENCE if seconds is None else seconds)

    def readable(self) -> bool:
        """They can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some more of them."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        try:
            return self.connection.recv_into(buffer)
        finally:
            self.connection.settimeout(PATIENCE)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = PATIENCE
    server: "Server"
    arriving: Arriving

    def setup(self) -> None:
        """Read with patience, but not with too much."""
        super().setup()
        self.rfile.close()
        self.arriving = Arriving(self.connection)
        self.rfile = io.BufferedReader(self.arriving)

    def handle_one_request(self) -> None:
        """The next request; half of one is as good as none."""
        self.arriving.wait()
        try:
            super().handle_one_request()
        except (OSError, ValueError):
            self.close_connection = True

    def do_GET(self) -> None:
        """Answer."""
        self._respond()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_GET  # noqa: N815

    def _respond(self) -> None:
        try:
            path, _, query = self.path.partition("?")
            length = self._checked(path)
            body = self._body(length)
            answer = self.server.site.respond(path, query, body, self._is_awaited)
        except Refused as refused:
            self._refuse(refused)
        except RegardError as error:
            self._refuse(Refused(500, str(error)))
        except MemoryError:
            self._refuse(Refused(503, "there is not enough memory for this now; ask for less."))
        except (Gone, ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as error:  # whatever it is, it ends here: one line, no traceback
            self.server.report(f"{self.path.partition('?')[0][:60]}: {type(error).__name__}: {error}")
            self._refuse(Refused(500, "something went wrong inside; the terminal of regard serve says what."))
        else:
            self._send(200, answer.body, {"Content-Type": answer.kind, **answer.headers}, answer.policy)

    def _is_awaited(self) -> bool:
        """Whether the other end is still there: who zooms on drops what was asked for before."""
        if not hasattr(select, "poll"):
            return True
        try:
            watch = select.poll()
            watch.register(self.connection, select.POLLIN)
            return not watch.poll(0) or bool(self.connection.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def _checked(self, path: str) -> int:
        """How many bytes of body there are to read, if the request is one that is answered at all."""
        posted = self.command not in ("GET", "HEAD")
        try:
            if len(self.path) > LARGEST_QUERY:
                raise Refused(414, f"the address has {len(self.path):,} signs; {LARGEST_QUERY:,} are the most.")
            require_ours(self.headers, self.server.port, page=path == "/")
            if self.command not in ("GET", "HEAD", "POST"):
                raise Refused(405, f"{self.command[:20]} will not do; use GET, HEAD or POST.", Allow="GET, HEAD, POST")
            self.server.site.require(self.command, path)
            return require_room(self.headers, posted=posted)
        except Refused:
            self._drain()
            raise

    def _body(self, length: int) -> bytes:
        self.arriving.wait()
        try:
            body = self.rfile.read(length) if length else b""
        except TimeoutError:
            self.close_connection = True
            raise Refused(408, f"the body did not arrive within {PATIENCE:.0f} seconds.") from None
        if len(body) < length:
            self.close_connection = True
            raise Refused(400, f"the body has {len(body)} bytes and Content-Length says {length}.")
        return body

    def _drain(self) -> None:
        """Read a body that nobody wants, for a second at most; a connection closed over it would lose the answer."""
        length = self.headers.get("Content-Length", "0").strip()
        if length == "0" and self.headers.get("Transfer-Encoding") is None:
            return
        self.close_connection = True
        self.arriving.wait(1.0)
        try:
            self.rfile.read(min(int(length), LARGEST_DRAINED) if length.isascii() and length.isdigit() else 0)
        except (OSError, ValueError):
            return

    def _refuse(self, refused: Refused) -> None:
        body = json.dumps({"error": refused.words}).encode("ascii")
        self._send(refused.status, body, {"Content-Type": "application/json; charset=utf-8", **refused.headers})

    def _send(self, status: int, body: bytes, headers: dict[str, str], policy: str | None = None) -> None:
        told = {**headers_of(policy), **headers, "Content-Length": str(len(body))}
        try:
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
        except OSError:  # nobody is there any more
            self.close_connection = True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server itself refuses, before it knows what is asked for: in JSON, as all else."""
        self.close_connection = True
        self.request_version = self.protocol_version  # an unknown one would be answered as the oldest, without a status
        self.command = self.command if getattr(self, "command", None) else "GET"
        status = 405 if code == 501 else int(code)
        allow = {"Allow": "GET, HEAD, POST"} if status == 405 else {}
        self._refuse(Refused(status, f"this is no request that can be answered: {message or 'bad request'}.", **allow))

    def version_string(self) -> str:
        """Who answers."""
        return "regard"

    def log_message(self, *_: Any) -> None:
        """Nothing: a page asks for hundreds of tiles."""
