"""The one HTML file: scripts joined, a policy that allows nothing else, the description, and blocks of data."""

import base64
import hashlib
import html
import json
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...formula.threads import cores
from .joining import joined

__all__ = ["APP", "block_of", "document", "policy", "read_block"]

APP = Path(__file__).with_name("app")
PLACES = ("title", "policy", "style", "first", "script", "worker", "description", "data")
FIRST = 2**19  # bytes that a browser may have to read before it starts the script
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_ENDS = {"script": re.compile(r"</script|<!--", re.I), "style": re.compile(r"</style", re.I)}
_SPECIAL = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def document(
    description: Mapping[str, Any], blocks: Iterable[tuple[str, Callable[[], bytes]]] = (), *, served: bool = False,
    app: Path | None = None,
) -> Iterator[bytes]:  # fmt: skip
    """The page, piece by piece.

    blocks: a name and what makes the bytes, which is called when their turn comes; those before the thumbnails are all
    that the first picture needs, and stand before the script where they are small. served: whether the page asks a
    server for its numbers. app: the folder of the scripts, where it is not our own.
    """
    app = APP if app is None else app
    template, style, script = _read(app / "page.html"), _style(app), joined(app, "main.js")
    worker = '"use strict";\n' + joined(app, "worker.js")
    for name, text, element in (("scripts", script, "script"), ("worker", worker, "script"), ("style", style, "style")):
        _require_inline(f"the page's {name}", text, element)
    filled = {
        "title": html.escape(str(description.get("title", ""))),
        "policy": _policy(script, style, served=served),
        "style": style,
        "script": script,
        "worker": worker,
        "description": _as_json(description),
    }
    blocks = list(blocks)
    needed = list(takewhile(lambda block: not block[0].startswith("thumbnails:"), blocks))
    first = list(_data(needed))
    early = sum(map(len, first)) <= FIRST
    pieces = _PLACE.split(template)  # text, place, text, place, …; what is filled in is not looked at again
    _require_places(template, pieces[1::2])
    for number, piece in enumerate(pieces):
        if number % 2 and piece in ("first", "data"):
            if early == (piece == "first"):
                yield from first
            if piece == "data":
                yield from _data(blocks[len(needed) :])
        else:
            yield (filled[piece] if number % 2 else piece).encode("utf-8", errors="replace")


def policy(*, served: bool) -> str:
    """The policy that our own page states, for a server that says it in a header too."""
    return _policy(joined(APP, "main.js"), _style(APP), served=served)


def block_of(name: str, content: bytes) -> bytes:
    """A block of data as it stands in the page: deflated, and then in base64."""
    deflated = zlib.compress(content, 6, wbits=-15)
    return b'<script type="text/plain" id="block:%s">%s</script>\n' % (name.encode("ascii"), base64.b64encode(deflated))


def read_block(page: bytes, name: str) -> bytes:
    """The bytes of a block in a page."""
    begin = b'id="block:%s">' % name.encode("ascii")
    _, found, rest = page.partition(begin)
    if not found:
        raise FileError(f"the page has no block {name}.")
    return zlib.decompress(base64.b64decode(rest[: rest.index(b"<")]), wbits=-15)


def _data(blocks: Iterable[tuple[str, Callable[[], bytes]]]) -> Iterator[bytes]:
    """The blocks in their order, deflated on all cores; only a few are in memory at a time."""
    workers = cores()
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for name, make in blocks:
            waiting.append(pool.submit(block_of, name, make()))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _as_json(description: Mapping[str, Any]) -> str:
    """JSON that ends no script, whatever the tokens say; what is not ASCII is escaped, lone surrogates too."""
    return json.dumps(description, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_SPECIAL)


def _policy(script: str, style: str, *, served: bool) -> str:
    """Only this script and style, nothing from elsewhere, and no talk to anyone but the server, where there is one."""
    allowed = {
        "default-src": "'none'", "script-src": _hash(script), "style-src": _hash(style), "img-src": "data: blob:",
        "worker-src": "blob:", "connect-src": "'self'" if served else "'none'", "base-uri": "'none'",
        "form-action": "'none'",
    }  # fmt: skip
    return "; ".join(f"{name} {sources}" for name, sources in allowed.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _style(app: Path) -> str:
    """All style sheets as one, those of single views behind the page's own."""
    views = sorted(file for file in app.glob("*.css") if file.name != "style.css")
    return "\n".join(_read(file) for file in (app / "style.css", *views))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{file} is a part of every page and cannot be read: {error.strerror}.") from None


def _require_inline(name: str, text: str, element: str) -> None:
    """A text that can stand inside an element: nothing in it ends the element, and its hash is that of what is read."""
    found = _ENDS[element].search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        raise FileError(f'{name} have "{found[0]}" in line {line}, which would end them early; write it another way.')
    if "\0" in text or "\r" in text:
        raise FileError(f"{name} have a NUL or a carriage return, which a browser reads as something else.")


def _require_places(template: str, places: list[str]) -> None:
    if set(places) != set(PLACES) or len(places) - places.count("title") != len(PLACES) - 1:
        raise FileError(
            f"page.html has the places {', '.join(places)}; it must have {', '.join(PLACES)}, each once but the title."
        )
    for place, element in (("script", "script"), ("style", "style")):
        if f">{{{{{place}}}}}</{element}>" not in template:
            raise FileError(f"page.html must have {{{{{place}}}}} right between the tags: the policy hashes all of it.")
