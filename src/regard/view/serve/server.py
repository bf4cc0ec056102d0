"""The server: bound to this machine alone, a thread for each connection and not too many of them."""

import errno
import socketserver
import sys
import threading
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any

from ...errors import OptionError
from ..labels import printable
from .handler import Handler
from .site import Site

__all__ = ["PORT", "Server", "listen", "require_port"]

PORT = 8787
TRIED = 20  # ports, from the first on
MOST_CONNECTIONS = 512
HOST = "127.0.0.1"
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 58\r\n"
    b"Connection: close\r\n\r\n"
    b'{"error": "too many connections; ask again in a second."}\n'
)


class Server(ThreadingHTTPServer):
    """Answers what a site answers, until it is closed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, port: int, site: Site) -> None:
        self.site = site
        self._room = threading.Semaphore(MOST_CONNECTIONS)
        super().__init__((HOST, port), Handler)

    def server_bind(self) -> None:
        """Take the port, and do not ask a name server who we are."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server_port

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for a connection, if there is room for one more."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.send(FULL)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection, to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def server_close(self) -> None:
        """Let go of the port, and compute nothing more."""
        super().server_close()
        self.site.answers.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke: nobody is there to be told."""

    def report(self, words: str) -> None:
        """One line on the terminal."""
        print(f"regard: {printable(words)[:400]}", file=sys.stderr)


def require_port(port: int | None) -> None:
    """An error unless there can be such a port."""
    if port is not None and not 0 <= port < 2**16:
        raise OptionError(f"--port is {port}; ports are 0 to 65535, and 0 takes any that is free.")


def listen(site: Site, port: int | None = None) -> Server:
    """A server at a port, 0 for any that is free; unless said, at the first free one from 8787 on."""
    require_port(port)
    candidates = [*range(PORT, PORT + TRIED), 0] if port is None else [port]
    for candidate in candidates:
        try:
            return Server(candidate, site)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES) or candidate == candidates[-1]:
                raise OptionError(
                    f"port {candidate} cannot be had: {error.strerror}; choose another with --port."
                ) from None
    raise AssertionError
