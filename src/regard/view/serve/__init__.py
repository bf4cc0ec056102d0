"""The live page: a record of any size, or a model that reads what is typed, served to a browser on this machine."""

import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import Any

from ...record import Record
from ..page.document import document, policy
from .answers import Answers
from .server import Server, listen, require_port
from .shelf import Reads, Shelf
from .site import Site

__all__ = ["Server", "require_port", "serve", "server_of"]


def server_of(record: Record, *, title: str, reads: Reads | None = None, port: int | None = None) -> Server:
    """A server for a record, and for those of texts that are typed where there is a model to read them."""
    return listen(Site(Answers(Shelf(record, title=title, reads=reads)), _page), port)


def serve(server: Server, *, browser: bool = True) -> None:
    """Answer until Ctrl-C."""
    print(f"serving {server.address}   (Ctrl-C ends it)", flush=True)
    if browser and _has_browser():
        threading.Thread(target=_open, args=(server.address,), daemon=True).start()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print(file=sys.stderr)
    finally:
        server.server_close()


def _page(description: dict[str, Any]) -> tuple[bytes, str]:
    """The page, and the policy that it states, which goes into the header too."""
    return b"".join(document(description, served=True)), policy(served=True)


def _has_browser() -> bool:
    """Whether there is a screen: a browser of the terminal would take the terminal."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(address: str) -> None:
    with suppress(webbrowser.Error, OSError):  # the address is on the terminal
        webbrowser.open(address)
