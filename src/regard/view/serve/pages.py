"""The pages of a mapped file, given back once they were read: a record of any size takes little memory."""

import mmap
from typing import Any

import numpy as np

from ...record import Record
from .refusal import Refused

__all__ = ["Pages"]


class Pages:
    """The files that the arrays of a record are views of."""

    def __init__(self, record: Record) -> None:
        maps = [one for run in record.runs for layer in run.layers for one in layer.maps]
        under = (_file_under(array) for one in maps for array in (one.queries, one.keys))
        self.files = {id(file): file for file in under if file is not None}

    def require_whole(self) -> None:
        """Refuse where a file has become shorter since it was mapped: to read what is gone would end the process."""
        for file in self.files.values():
            if file.size() < len(file):
                raise Refused(409, "the record's file was cut short or written over while it was served; start anew.")

    def give_back(self) -> None:
        """Let go of what was read: it stays in the system's own cache, and comes back from there when it is needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            for file in self.files.values():
                file.madvise(mmap.MADV_DONTNEED)


def _file_under(array: Any) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        array = array.base
    return array if isinstance(array, mmap.mmap) else None
