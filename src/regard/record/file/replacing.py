"""A file that is written under a temporary name, and takes its place when it is complete."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import FileError
from .format import path_of

__all__ = ["target_of", "write_whole"]


def target_of(path: Any) -> Path:
    """The file to be written: where a link points to, and nothing but a file. What is wrong is said before the work."""
    target = Path(os.path.realpath(path_of(path)))
    try:
        mode = target.stat().st_mode
    except OSError as error:  # there is none yet
        if not target.parent.is_dir():
            raise FileError(f"{target} cannot be written: {_reason(error, target, None)}") from None
        return target
    if not stat.S_ISREG(mode):
        raise FileError(f"{target} is {'a folder' if stat.S_ISDIR(mode) else 'no plain file'}; name a file.")
    return target


def write_whole(target: Path, pieces: Iterable[Any], size: int | None = None) -> None:
    """All pieces, or an error and the older file as it was. size: of all together, where it is known, for the error"""
    temporary = target.with_name(f".regard-{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            for piece in pieces:
                file.write(piece)
        temporary.replace(target)
    except FileError:
        raise  # of a piece, in its own words
    except OSError as error:
        raise FileError(f"{target} cannot be written: {_reason(error, target, size)}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _reason(error: OSError, target: Path, size: int | None) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"there is no folder {target.parent}; make it first."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"the folder {target.parent} may not be written to; choose another."
    if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        needed = (
            "there is no room for it" if size is None else f"it takes {size:,} bytes, and there is no room for them"
        )
        return f"{needed}; make room, or choose another disk."
    return f"{error.strerror or error}."
