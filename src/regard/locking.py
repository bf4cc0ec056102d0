"""A folder that one process at a time works in; the lock goes with the process, however it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where a folder cannot be locked so, and nobody keeps two processes apart
    LOCKS = False
else:
    LOCKS = True

__all__ = ["locked"]


@contextmanager
def locked(folder: Path, *, busy: str) -> Iterator[None]:
    """The folder, made if need be, and nobody else's. busy: what is said where another process has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "there is a file of that name" if folder.is_file() else error.strerror
        raise FileError(f"cannot make the folder {folder}: {why}; choose another.") from None
    if not LOCKS:
        yield
        return
    directory = os.open(folder, os.O_RDONLY)
    try:
        _lock(directory, busy)
        yield
    finally:
        os.close(directory)


def _lock(directory: int, busy: str) -> None:
    try:
        flock(directory, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise FileError(busy) from None
    except OSError:
        pass  # a file system without locks is worked on nevertheless
