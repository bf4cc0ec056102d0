"""A file that is written under a temporary name, and takes its place when it is complete."""

import errno
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import FileError

__all__ = ["reason", "write_whole"]


def write_whole(target: Path, pieces: Iterable[Any], size: int | None = None) -> None:
    """All pieces, or an error and the older file as it was. size: of all together, where it is known, for the error"""
    temporary = target.with_name(f".regard-{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())  # or a machine that goes down might leave a name without its content
        temporary.replace(target)
    except FileError:
        raise  # of a piece, in its own words
    except OSError as error:
        raise FileError(f"{target} cannot be written: {reason(error, target, size)}") from None
    finally:
        temporary.unlink(missing_ok=True)


def reason(error: OSError, target: Path, size: int | None = None) -> str:
    """Why a file cannot be written, and what to do."""
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
