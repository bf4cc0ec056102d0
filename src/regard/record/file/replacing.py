"""Where a file of ours is to be written: what is wrong with its name is said before the work."""

import os
import stat
from pathlib import Path
from typing import Any

from ...errors import FileError
from ...replacing import reason, write_whole
from .format import path_of

__all__ = ["target_of", "write_whole"]


def target_of(path: Any) -> Path:
    """The file to be written: where a link points to, and nothing but a file."""
    target = Path(os.path.realpath(path_of(path)))
    try:
        mode = target.stat().st_mode
    except OSError as error:  # there is none yet
        if not target.parent.is_dir():
            raise FileError(f"{target} cannot be written: {reason(error, target)}") from None
        return target
    if not stat.S_ISREG(mode):
        raise FileError(f"{target} is {'a folder' if stat.S_ISDIR(mode) else 'no plain file'}; name a file.")
    return target
