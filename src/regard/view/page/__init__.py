"""A record as one HTML file that needs nothing else: written to a disk, shown in a notebook or in the browser."""

import html
import sys
import tempfile
import webbrowser
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...record.file.replacing import target_of, write_whole
from .describe import chosen, describe
from .document import document
from .packing import Progress, pack

if TYPE_CHECKING:
    from ...record import Record

__all__ = ["page", "show"]

HEIGHT = 720  # pixels of a page in a notebook
Numbers = int | Iterable[int] | None  # of layers or heads, in the model


def page(
    record: "Record", path: str | PathLike[str], *, layers: Numbers = None, heads: Numbers = None,
    title: str | None = None, progress: Progress | None = None,
) -> None:  # fmt: skip
    """Write a record as one HTML file. An older file of that name stays until the new one is complete.

    layers, heads: some of them, by their numbers in the model. title: the model's name unless said. progress: told the
    share of the work that is done: the map of a long text is gone through once.
    """
    target = target_of(path)
    write_whole(target, _pieces(record, layers, heads, title, progress))


def show(record: "Record", *, layers: Numbers = None, heads: Numbers = None, title: str | None = None) -> Path | None:
    """The page in the notebook one is in, or else in the browser, from a temporary file whose path comes back."""
    display = _notebook()
    if display is not None:
        whole = b"".join(_pieces(record, layers, heads, title)).decode()
        display({"text/html": _frame(whole), "text/plain": repr(record)}, raw=True)
        return None
    file = Path(tempfile.mkdtemp(prefix="regard-")) / "page.html"
    page(record, file, layers=layers, heads=heads, title=title)
    if not _opened(file):
        print(f"page: {file}, open it in a browser")
    return file


def _pieces(
    record: "Record", layers: Numbers, heads: Numbers, title: str | None, progress: Progress | None = None
) -> Iterator[bytes]:
    shown = chosen(record, layers, heads)
    packed = pack(shown, progress)
    told = describe(shown, title=title, source="packed", precision=packed.precision, details=packed.details)
    return document(told, packed.blocks)


def _frame(whole: str) -> str:
    """A page inside another: it may run its own script and save files, and reaches nothing around it."""
    return (
        '<div><iframe sandbox="allow-scripts allow-downloads" allow="clipboard-write" '
        f'width="100%" height="{HEIGHT}" style="border: 0" '
        f'srcdoc="{html.escape(whole)}"></iframe></div>'
    )


def _notebook() -> Any:
    """What displays things in a notebook, if we are in one: IPython is there then, with a kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if ipython is None or getattr(shell, "kernel", None) is None else ipython.display.display


def _opened(file: Path) -> bool:
    try:
        return webbrowser.open(file.as_uri())
    except webbrowser.Error:
        return False
