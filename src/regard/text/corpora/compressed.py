"""A path → its bytes, unpacked on the way where the name ends in .gz, .bz2, .xz or .zst."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BufferedReader
from pathlib import Path
from typing import Any

from ...errors import FileError, MissingExtra

ENDINGS = (".gz", ".bz2", ".xz", ".zst")
AT_ONCE = 2**18  # bytes


def bare(path: Path) -> Path:
    """The path without the ending that says how it is packed."""
    return path.with_suffix("") if path.suffix.lower() in ENDINGS else path


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """The bytes of a file, unpacked. A damaged one is an error when its damage is met, which may be late."""
    damage: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
    try:
        if path.suffix.lower() == ".zst":
            zstd = _zstd(path)
            damage = (*damage, zstd.ZstdError)
            file = zstd.open(path, "rb")
        else:
            file = _OPENERS.get(path.suffix.lower(), open)(path, "rb")
        with file, BufferedReader(file, AT_ONCE) as buffered:
            yield buffered
    except damage as error:
        raise FileError(f"{path} is damaged, or not what its name says: {error}; fetch it again.") from error
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}.") from error


def require_file(path: Path) -> None:
    """Refuse what cannot be read again and again: nothing, a folder, a pipe."""
    if not path.exists():
        raise FileError(f"There is no file {path}.")
    if not path.is_file():
        raise FileError(f"{path} is no file; a corpus is read several times, so it must be one on disk.")


def _zstd(path: Path) -> Any:
    """Python's own module from 3.14 on, or the package that brings it to earlier ones."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingExtra(f"{path} needs a module for .zst files: pip install backports.zstd, or unpack it with zstd -d")


_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
