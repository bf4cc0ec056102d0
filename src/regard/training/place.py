"""The folder of a run: made if need be, and trained in by one process, or one group of them, at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError
from ..locking import locked
from ..model.saved import CONFIG
from .ranks import Ranks
from .settings import FILE as RUN


@contextmanager
def alone_in(out: Path, ranks: Ranks) -> Iterator[None]:
    """The folder, made if need be, without a model of somebody else's and without another process that trains there."""
    if not ranks.first:
        yield
        return
    with locked(out, busy=f"another process is training in {out}; wait for it, or give another folder."):
        if (out / CONFIG).exists() and not (out / RUN).exists():
            raise FileError(f"{out} has a model that was not trained there, and would be lost; give another folder.")
        for left in out.glob(".regard-*.part"):  # by a process that was killed while it wrote
            left.unlink(missing_ok=True)
        yield
