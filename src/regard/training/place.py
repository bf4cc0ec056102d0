"""The folder of a run: made if need be, and trained in by one process, or one group of them, at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import FileError
from ..model.saved import CONFIG
from .ranks import Ranks
from .settings import FILE as RUN


@contextmanager
def alone_in(out: Path, ranks: Ranks) -> Iterator[None]:
    """The folder, made if need be, without a model of somebody else's and without another process that trains there.

    The lock goes with the process, however it ends.
    """
    if not ranks.first:
        yield
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        directory = os.open(out, os.O_RDONLY)
    except OSError as error:
        why = "it is a file" if out.is_file() else error.strerror
        raise FileError(f"cannot make the folder {out}: {why}; give another with --out.") from None
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(f"another process is training in {out}; wait for it, or give another folder.") from None
        except OSError:
            pass  # a file system without locks
        if (out / CONFIG).exists() and not (out / RUN).exists():
            raise FileError(f"{out} has a model that was not trained there, and would be lost; give another folder.")
        for left in out.glob(".regard-*.part"):  # by a process that was killed while it wrote
            left.unlink(missing_ok=True)
        yield
    finally:
        os.close(directory)
